import type { Tool as McpTool } from '@modelcontextprotocol/client'
import { Allowance } from '../../base/allowance.ts'
import { messageOf, ToolError } from '../../base/error.ts'
import { ErrorResult } from '../result.ts'
import type { SourceTool } from '../source/source.ts'
import { type Tool, type ToolContext, tool } from '../tool.ts'
import type { ListedTool } from './read-tools.ts'
import type { Server } from './server.ts'
import { shownResult } from './shown-result.ts'
import { shownLine } from './shown-text.ts'

/** A tool of a server. What a server says of its effects is not believed: it is effectful. */
export function serverTool(server: Server, listed: ListedTool): SourceTool {
  const made = tool({
    description: listed.description,
    inputSchema: { type: 'object' },
    timeoutMs: server.timeoutMs,
    execute: (input, context) => callTool(server, { listed, input }, context),
  })
  return { tool: Object.freeze({ ...made, input: listed.input }) as Tool, name: listed.name, version: listed.version }
}

async function callTool(
  server: Server,
  { listed, input }: { readonly listed: ListedTool; readonly input: unknown },
  context: ToolContext,
): Promise<unknown> {
  const { name, inputSchema } = listed
  const params = { name, arguments: input as Record<string, unknown> }
  // Some arguments are sent as headers too, as the schema says. Without an output schema nothing of a server is compiled.
  const toolDefinition = { name, inputSchema: inputSchema as McpTool['inputSchema'] }
  try {
    const result = await server.request((client, options) => client.callTool(params, { ...options, toolDefinition }), {
      signal: context.signal,
      onprogress: progressOf(context, server),
    })
    const shown = shownResult(result.content, result.structuredContent, server.secrets)
    return result.isError === true ? new ErrorResult(shown) : shown
  } catch (error) {
    if (context.signal.aborted || !server.isLost) throw error
    const words = `${messageOf(error)}. It may or may not have taken effect: check before you call it again.`
    throw new ToolError('tool', words, { cause: error })
  }
}

/** Of one call: some at once, then not more often than anybody can read. */
const PROGRESS_AT_ONCE = 20
const PROGRESS_PER_SECOND = 10

interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

function progressOf(context: ToolContext, { secrets }: Server): (progress: Progress) => void {
  const allowance = new Allowance(PROGRESS_AT_ONCE, PROGRESS_PER_SECOND)
  return ({ progress, total, message }) => {
    if (!allowance.take(1, Date.now())) return
    const words = message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`)
    const shown = shownLine(secrets.clean(words)).slice(0, LONGEST_PROGRESS)
    context.progress(shown, { progress, ...(total === undefined ? {} : { total }) })
  }
}

const LONGEST_PROGRESS = 1_000
