// The providers' part of the fake host: adds, signs in, offers, tests.
// Invariant: as in the app, no secret comes back; only that there is one.
import type {
  FoundLogin,
  ModelTest,
  ModelView,
  OfferedModel,
  ProviderDraft,
  ProviderView,
  RemoteDraft,
  RemovedProvider,
  SignedIn,
  SignIn,
} from "../../bindings/app";
import type { ProviderHost } from "../providers";
import { FakeModels } from "./modelhost";
import * as data from "./providers";
import { problem } from "./serverhost";

const PAUSE_MS = 250;

export class FakeProviders extends FakeModels implements ProviderHost {
  #stops = new Map<string, () => void>();
  #removedProviders = new Map<string, RemovedProvider>();
  protected models = new Map<string, string>();

  #provider(id: string): ProviderView {
    const provider = this.view.providers.find((one) => one.id === id);
    if (!provider) throw problem("unknown_provider", `there is no provider \`${id}\``);
    return provider;
  }

  #tellProviders(providers: ProviderView[]): void {
    this.view = { ...this.view, providers };
    this.news({ type: "providers_changed", providers });
  }

  #setModels(models: ModelView[], model = this.view.model): void {
    this.view = { ...this.view, model, models };
    this.news({ type: "models_changed", model, models });
    const of = (id: string) => models.filter((one) => one.remote?.provider === id).map((one) => one.id);
    this.#tellProviders(this.view.providers.map((one) => ({ ...one, models: of(one.id) })));
  }

  #put(provider: ProviderView): ProviderView {
    const known = this.view.providers.some((one) => one.id === provider.id);
    this.#tellProviders(
      known
        ? this.view.providers.map((one) => (one.id === provider.id ? provider : one))
        : [...this.view.providers, provider],
    );
    return provider;
  }

  /** Takes a while, and less when it is stopped. */
  #asking(name: string, ms = PAUSE_MS): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      this.#stops.set(name, () => {
        clearTimeout(timer);
        reject(problem("cancelled", "it was stopped"));
      });
    });
  }

  async addProvider(draft: ProviderDraft): Promise<ProviderView> {
    if (/[?#@]/.test(draft.base_url ?? "")) throw problem("bad_address", "the address goes on after `?` or `#`");
    const stem = (draft.name ?? draft.kind).toLowerCase().replace(/[^a-z0-9]+/g, "-");
    let id = stem;
    for (let n = 2; this.view.providers.some((one) => one.id === id); n++) id = `${stem}-${n}`;
    return this.#put(data.providerOf(id, draft));
  }

  async changeProvider(id: string, draft: ProviderDraft): Promise<ProviderView> {
    const before = this.#provider(id);
    const changed = data.providerOf(id, draft);
    const login = changed.address === before.address ? before.login : changed.login;
    return this.#put({ ...changed, login, models: before.models });
  }

  async removeProvider(id: string): Promise<RemovedProvider> {
    const provider = this.#provider(id);
    const models = this.view.models.filter((one) => one.remote?.provider === id);
    const removed = { token: `gone-${id}`, provider, models };
    this.#removedProviders.set(removed.token, removed);
    this.#tellProviders(this.view.providers.filter((one) => one.id !== id));
    this.#setModels(this.view.models.filter((one) => !models.includes(one)));
    return removed;
  }

  async restoreProvider(token: string): Promise<ProviderView> {
    const removed = this.#removedProviders.get(token);
    if (!removed) throw problem("unknown_removal", "what was removed can't come back any more");
    this.#put(removed.provider);
    this.#setModels([...this.view.models, ...removed.models]);
    return removed.provider;
  }

  async signInProvider(id: string, sign: SignIn): Promise<SignedIn> {
    const provider = this.#provider(id);
    const secret = sign.type === "key" ? sign.key : sign.type === "service_account" ? sign.json : "";
    const asked = window as unknown as { signIns?: { id: string; type: string; length: number }[] };
    asked.signIns = [...(asked.signIns ?? []), { id, type: sign.type, length: secret.length }];
    if (/\s/.test(secret.trim()) && sign.type === "key") {
      throw problem("bad_credentials", "the key has spaces in it", "Copy it again.");
    }
    if (sign.type === "service_account" && !secret.trim().startsWith("{")) {
      throw problem("bad_credentials", "this is no key of a service account", "Paste the whole JSON file.");
    }
    const session = secret.includes("session");
    const account = sign.type === "service_account" ? "robot@project.iam.gserviceaccount.com" : null;
    const login = ((): ProviderView["login"] => {
      const base = { type: "signed_in" as const, account, project: null, from: null };
      if (sign.type === "none") return { type: "not_needed" };
      if (sign.type === "metadata") return { ...base, place: "machine" };
      if (sign.type === "application_default") {
        return { ...base, account: sign.account ?? null, place: "file", from: sign.path };
      }
      return { ...base, place: session ? "session" : "keyring" };
    })();
    const changed = this.#put({ ...provider, sign_in: sign.type, login, problem: null });
    const reason = problem("no_keyring", "there is no keyring on this system", "Install gnome-keyring or KWallet.");
    return { provider: changed, for_this_session: session ? reason : null };
  }

  async chooseKeyFile(id: string): Promise<SignedIn | null> {
    return this.signInProvider(id, { type: "service_account", json: "{}" });
  }

  async signInDropped(id: string): Promise<SignedIn> {
    return this.signInProvider(id, { type: "service_account", json: "{}" });
  }

  async signOutProvider(id: string): Promise<ProviderView> {
    return this.#put({ ...this.#provider(id), login: { type: "signed_out" } });
  }

  async foundLogin(): Promise<FoundLogin | null> {
    return data.found;
  }

  async providerModels(id: string): Promise<OfferedModel[]> {
    const provider = this.#provider(id);
    await this.#asking(`models ${id}`, id === "nas" ? 600_000 : PAUSE_MS);
    if (provider.login.type === "signed_out") {
      throw problem("unauthorized", `nobody is signed in at ${provider.name}`, "Sign in above.");
    }
    return data.offeredBy(provider).map((one) => ({ ...one, added: null }));
  }

  async stopProviderModels(id: string): Promise<void> {
    this.#stops.get(`models ${id}`)?.();
  }

  async addRemoteModel(draft: RemoteDraft): Promise<ModelView> {
    const id = draft.model.replace(/[^a-zA-Z0-9]+/g, "-");
    const model = data.remoteModel(id, this.#provider(draft.provider), draft);
    this.#setModels([...this.view.models.filter((one) => one.id !== id), model]);
    return model;
  }

  async changeRemoteModel(id: string, draft: RemoteDraft): Promise<ModelView> {
    const model = data.remoteModel(id, this.#provider(draft.provider), draft);
    this.#setModels(this.view.models.map((one) => (one.id === id ? model : one)));
    return model;
  }

  async testModel(id: string): Promise<ModelTest> {
    const model = this.view.models.find((one) => one.id === id);
    if (!model) throw problem("unknown_model", `there is no model \`${id}\``);
    await this.#asking(`test ${id}`, 600);
    return data.testOf(model);
  }

  async stopModelTest(id: string): Promise<void> {
    this.#stops.get(`test ${id}`)?.();
  }

  async setConversationModel(conversation: string, model: string | null): Promise<void> {
    if (model === null) this.models.delete(conversation);
    else this.models.set(conversation, model);
  }
}
