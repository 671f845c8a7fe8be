import { DefinitionError } from '../base/error.ts'
import { fromAiSdkTool, isForeignTool } from '../tool/from-ai-sdk-tool.ts'
import { READ_RESULT } from '../tool/read-result.ts'
import { RESET_TOOLS } from '../tool/reset-tools.ts'
import { isTool, type Tool } from '../tool/tool.ts'
import type { Tools } from './agent.ts'

/** The tools of a definition by their names. */
export function readTools(tools: Tools, where: string): ReadonlyMap<string, Tool> {
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools)) {
    refuse(`${where}: tools are an object, { name: tool({ ... }) }: the key is the name.`)
  }
  const read = new Map<string, Tool>()
  for (const [name, tool] of Object.entries(tools)) {
    checkToolName(name, where)
    read.set(name, isTool(tool) ? tool : foreignTool(tool, `${where}: tools.${name}`))
  }
  return read
}

function foreignTool(given: unknown, where: string): Tool {
  if (!isForeignTool(given)) refuse(`${where} is not a tool. Make it with tool({ ... }).`)
  return fromAiSdkTool(given, `agent(): ${where}`)
}

export function checkToolName(name: string, where: string): void {
  if (name === READ_RESULT || name === RESET_TOOLS)
    refuse(`${where}: the tool "${name}" is built in. Give yours another name.`)
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(name)) return
  refuse(`${where}: "${name.slice(0, 80)}" is no name for a tool: models accept a-z, A-Z, 0-9, _ and -, at most 64.`)
}

function refuse(message: string): never {
  throw new DefinitionError('definition', `agent(): ${message}`)
}
