// All types of the core in one place; the files beside it are generated from Rust.
export type * from "./core/event";
export type * from "./core/exposure";
export type * from "./core/fit";
export type * from "./core/form";
export type * from "./core/ids";
export type * from "./core/message";
export type * from "./core/model";
export type * from "./core/permission";
export type * from "./core/question";
export type * from "./core/tool";
