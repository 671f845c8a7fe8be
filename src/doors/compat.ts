export type { ToolFunctionOptions } from '../agent/definition/agent.ts'
export type { KeyOptions } from '../conversation/fields/run-fields.ts'
export type { ShapedTool } from '../tool/tool.ts'
