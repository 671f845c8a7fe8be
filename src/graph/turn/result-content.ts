import type { Content } from '../content.ts'
import type { Node } from '../rows.ts'

/** What a model reads as the result of a task, whatever way the task ended. */
export function resultContent(task: Node): Content {
  if (task.output.content !== undefined) return task.output.content
  const why = task.failure?.message ?? 'no reason recorded'
  switch (task.state) {
    case 'uncertain':
      return `The outcome of this call is unknown: ${why} It may or may not have taken effect. Check before you call it again.`
    case 'stopped':
      return `<system-info>The tool call has been interrupted by the user.</system-info> ${why}`
    case 'rejected':
      return `Error: this call was denied. ${why}`
    case 'skipped':
      return `Error: this call was not run: ${why}`
    case 'errored':
      return `Error: ${why}`
    case 'finished':
      return ''
    default:
      return `This call has no result yet (${task.state}).`
  }
}
