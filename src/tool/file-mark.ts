import type { Tool } from './tool.ts'

const marked: WeakSet<Tool> = new WeakSet()

/** Marks the file tools: a child may inherit them from its host. */
export function markFileTools<Name extends string>(tools: Record<Name, Tool>): Record<Name, Tool> {
  for (const tool of Object.values<Tool>(tools)) marked.add(tool)
  return tools
}

export function isFileTool(tool: Tool): boolean {
  return marked.has(tool)
}
