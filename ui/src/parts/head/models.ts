// What is known of a model, in one line.
import type { ModelView } from "../../bindings/app";
import { bytes, compact } from "../../text/format";
import { contextSize } from "../../text/models";
import { t } from "../../i18n/i18n.svelte";

export function modelFacts(lang: string, model: ModelView): string {
  const facts = [
    model.architecture,
    model.parameters === null ? null : t("model.parameters", { count: compact(lang, model.parameters) }),
    model.quantisation,
    model.size === null ? null : bytes(lang, model.size),
    model.context_length === null ? null : t("model.context", { tokens: contextSize(lang, model.context_length) }),
    model.tool_mode === "off" ? t("model.toolsOff") : model.tool_mode === "prompted" ? t("model.toolsPrompted") : null,
  ];
  return facts.filter((fact) => fact !== null && fact !== "").join(" · ");
}
