import { truncateUtf8 } from '../base/json.ts'
import { SHOWN_BYTES } from '../graph/body.ts'
import type { Reader } from '../graph/reader.ts'
import { type Tool, tool } from './tool.ts'

export const READ_RESULT = 'read_result'

/** Pages through results that were too long to show. Offered where a conversation has one; it reads only its own. */
export function readResultTool(reader: Reader): Tool {
  return tool({
    description: 'Reads more of an earlier tool result that was cut. Use the id and offset that the cut result names.',
    inputSchema: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'The id named by the cut result' },
        offset: { type: 'integer', minimum: 0, description: 'Where to read on, in characters' },
      },
      required: ['id', 'offset'],
      additionalProperties: false,
    },
    effect: 'pure',
    execute: async (input, { node }) => {
      const { id, offset } = input as { id: string; offset: number }
      const { isOwnResult } = await import('../graph/child/own-result.ts')
      const task = reader.node(id)
      const isOwn = task !== undefined && isOwnResult(reader, node, task)
      const own = isOwn ? task.output.bodyRef : undefined
      const text = own === undefined ? undefined : reader.body(own)
      if (text === undefined) throw new Error(`there is no cut result ${id} in this conversation`)
      const page = truncateUtf8(text.slice(offset, offset + SHOWN_BYTES), SHOWN_BYTES - 1_024)
      const end = offset + page.length
      if (end >= text.length) return page
      return `${page}\n[${text.length - end} characters left. To read on: offset ${end}]`
    },
  }) as Tool
}
