export type { ToolChoice } from '../core/agent/definition/agent.ts'
export type {
  FinishReason,
  Message,
  Model,
  ModelRequest,
  ModelSettings,
  Part,
  ToolSchema,
} from '../core/model/model.ts'
export { findModel } from '../core/model/named/find-model.ts'
export { costOf, type ModelInfo, modelInfo } from '../core/model/named/prices.ts'
export type { ModelLike } from '../core/model/named/to-model.ts'
