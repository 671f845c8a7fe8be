import type { Request } from '../grant/request.ts'
import type { Tool } from './tool.ts'

const fileTools: WeakSet<Tool> = new WeakSet()
const used: WeakMap<Tool, Domain> = new WeakMap()

type Domain = Request['domain']

/** Marks the file tools: a child may inherit them from its host. */
export function markFileTools<Name extends string>(tools: Record<Name, Tool>): Record<Name, Tool> {
  for (const tool of Object.values<Tool>(tools)) fileTools.add(tool)
  return tools
}

export function isFileTool(tool: Tool): boolean {
  return fileTools.has(tool)
}

/** Marks what every call of a tool asks for: where all of it is forbidden, no call of the tool can do anything. */
export function markUse(tool: Tool, domain: Domain | undefined): Tool {
  if (domain !== undefined) used.set(tool, domain)
  return tool
}

export function useOf(tool: Tool): Domain | undefined {
  return used.get(tool)
}
