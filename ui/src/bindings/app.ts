// All types of the app in one place; the files beside it are generated from Rust.
export type * from "./app/api";
export type * from "./app/audit";
export type * from "./app/drops";
export type * from "./app/enclosed";
export type * from "./app/generation";
export type * from "./app/hub";
export type * from "./app/import";
export type * from "./app/metrics";
export type * from "./app/models";
export type * from "./app/providers";
export type * from "./app/resources";
export type * from "./app/servers";
export type * from "./app/view";
export type * from "./app/watch";
