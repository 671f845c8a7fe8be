import type { Tool } from '../../tool/tool.ts'

const open: WeakSet<Tool> = new WeakSet()

/** Marks a tool that starts subagents which a model describes: a child is not shown it, and refused when it calls it. */
export function markOpen(tool: Tool): Tool {
  open.add(tool)
  return tool
}

export function isOpenTool(tool: Tool): boolean {
  return open.has(tool)
}
