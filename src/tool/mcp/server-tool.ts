import { messageOf, ToolError } from '../../base/error.ts'
import { ErrorResult } from '../result.ts'
import type { SourceTool } from '../source/source.ts'
import { type Tool, type ToolContext, tool } from '../tool.ts'
import type { ListedTool } from './read-tools.ts'
import type { Server } from './server.ts'
import { shownResult } from './shown-result.ts'

/** A tool of a server. What a server says of its effects is not believed: it is effectful. */
export function serverTool(server: Server, listed: ListedTool): SourceTool {
  const made = tool({
    description: listed.description,
    inputSchema: { type: 'object' },
    timeoutMs: server.timeoutMs,
    execute: (input, context) => callTool(server, { name: listed.name, input }, context),
  })
  return { tool: Object.freeze({ ...made, input: listed.input }) as Tool, version: listed.version }
}

async function callTool(
  server: Server,
  { name, input }: { readonly name: string; readonly input: unknown },
  context: ToolContext,
): Promise<unknown> {
  const { CallToolResultSchema } = await import('@modelcontextprotocol/sdk/types.js')
  const params = { name, arguments: input as Record<string, unknown> }
  try {
    const result = await server.request(
      (client, options) => client.request({ method: 'tools/call', params }, CallToolResultSchema, options),
      { signal: context.signal, onprogress: progressOf(context, server) },
    )
    const shown = shownResult(result.content, result.structuredContent, server.redaction)
    return result.isError === true ? new ErrorResult(shown) : shown
  } catch (error) {
    if (context.signal.aborted || !server.isLost) throw error
    const words = `${messageOf(error)}. It may or may not have taken effect: check before you call it again.`
    throw new ToolError('tool', words, { cause: error })
  }
}

const PROGRESS_MS = 100

interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** Shown to whoever watches, not more often than anybody can read. */
function progressOf(context: ToolContext, { redaction }: Server): (progress: Progress) => void {
  let last = 0
  return ({ progress, total, message }) => {
    const now = Date.now()
    if (now - last < PROGRESS_MS && progress !== total) return
    last = now
    const words = message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`)
    context.progress(redaction.clean(words).slice(0, 1_000), { progress, ...(total === undefined ? {} : { total }) })
  }
}
