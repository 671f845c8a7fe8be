import { currentCall } from '../tool/current.ts'
import { type Tool, tool } from '../tool/tool.ts'

const WRITE = 'todo_write'
const MOST_CHARS = 50_000

/** A list of tasks. The last call that wrote it is its only storage, in the conversation. */
export function todoTools(): Record<'todo_read' | 'todo_write', Tool> {
  return {
    todo_write: tool({
      description:
        'Writes your list of what is to do, over the one before. Keep it up to date while you work: one line each, [ ] or [x] before it.',
      input: {
        type: 'object',
        properties: { content: { type: 'string', maxLength: MOST_CHARS } },
        required: ['content'],
        additionalProperties: false,
      },
      effect: 'pure',
      execute: (input) => `Written: ${(input as { content: string }).content.length} characters.`,
    }) as Tool,
    todo_read: tool({
      description: 'Reads your list of what is to do, as it was last written.',
      input: { type: 'object', properties: {}, additionalProperties: false },
      effect: 'pure',
      execute: () => {
        const last = currentCall()?.recall(WRITE) as { content?: string } | undefined
        return last?.content || 'There is nothing on the list.'
      },
    }) as Tool,
  }
}
