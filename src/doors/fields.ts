export type { AgentRawOutput } from '../core/agent/definition/agent.ts'
export { FieldError, type FieldFailure } from '../core/base/error.ts'
export type { InferInput, InferOutput } from '../core/base/schema/schema.ts'
export type { FieldResult } from '../core/conversation/fields/field-handlers.ts'
export type { RunField } from '../core/conversation/fields/run-field.ts'
export type { FieldsOptions } from '../core/conversation/fields/run-fields.ts'
export type { FieldOptions } from '../core/conversation/fields/wait-for-field.ts'
export type { FieldHandler } from '../core/conversation/run.ts'
export type { ParserLimits } from '../core/fields/chars.ts'
export { missingFields } from '../core/fields/field-check.ts'
export type { FieldEvent, FieldKind } from '../core/fields/field-event.ts'
export {
  type FieldParser,
  type FieldParserOptions,
  fieldParser,
  type ParserResult,
} from '../core/fields/field-parser.ts'
export type { FieldPath, FieldValue } from '../core/fields/field-path.ts'
export { dotPath, slashPath, wildcardPath } from '../core/fields/field-path.ts'
export { matchesPath, type PathPattern, type PathSegment, readPath } from '../core/fields/path-pattern.ts'
export type { ParserState } from '../core/fields/text-parser.ts'
