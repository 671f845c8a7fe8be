import type { Json } from '../../base/json.ts'
import { textOf } from '../../graph/content.ts'
import type { Node } from '../../graph/rows.ts'
import { isFailed, resultContent } from '../../graph/tasks.ts'

/** A tool that a run used, its purpose, and its result. */
export type ToolLog = {
  readonly tool_name: string
  readonly kwargs: Json
  readonly purpose: string
  readonly result: Json
  readonly success: boolean
}

/** Reads the logs from the nodes of a run, in order; skips nodes that have not ended. */
export function toolLogs(nodes: readonly Node[]): ToolLog[] {
  return nodes
    .filter(({ kind, endedAt, input }) => kind === 'task' && endedAt !== null && input.call !== undefined)
    .map((task) => {
      const { name = '', input: kwargs = null } = task.input.call ?? {}
      return { tool_name: name, kwargs, purpose: purposeOf(task) ?? name, ...resultOf(task) }
    })
}

/** The results by purpose: a repeated purpose gets a number. */
export function actionResults(nodes: readonly Node[]): { readonly [purpose: string]: Json } {
  const results = new Map<string, Json>()
  for (const { purpose, result, success } of toolLogs(nodes.filter((node) => purposeOf(node) !== undefined))) {
    results.set(freeName(results, purpose), success ? result : { error: result })
  }
  return Object.fromEntries(results)
}

/** The purpose of a planned call; undefined for any other node. */
function purposeOf({ metadata }: Node): string | undefined {
  const { planned } = metadata as { readonly planned?: { readonly purpose?: string } }
  return planned?.purpose
}

function resultOf(task: Node): Pick<ToolLog, 'result' | 'success'> {
  const success = !isFailed(task)
  return { success, result: task.output.value ?? textOf(resultContent(task)) }
}

function freeName(taken: ReadonlyMap<string, Json>, purpose: string): string {
  if (!taken.has(purpose)) return purpose
  for (let number = 2; ; number++) {
    const name = `${purpose} (${number})`
    if (!taken.has(name)) return name
  }
}
