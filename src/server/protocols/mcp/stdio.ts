import { randomBytes } from 'node:crypto'
import type { ScopedRuntime } from '../../../index.ts'
import { checkMcpOptions, type McpOptions } from './offer/options.ts'
import { makeServer } from './serving.ts'

/** How a program serves MCP over its own standard input and output. */
export interface ServeMcpOptions extends McpOptions {
  /** The key that states are signed with, at least 32 bytes. Default: one that ends with this process. */
  readonly key?: Uint8Array
  /** Hears of errors that callers are not told of. Default: warnings of the process. */
  readonly report?: (error: unknown) => void
}

/**
 * Serves the agents of a principal as MCP tools over stdin and stdout, which nothing else may write to. Resolves when the
 * client has left; runs go on until the runtime is closed.
 */
export async function serveMcp(runtime: ScopedRuntime, given: ServeMcpOptions = {}): Promise<void> {
  const { key = randomBytes(32), report = warn, ...options } = given
  checkMcpOptions(options, 'serveMcp(runtime, options)')
  const [sdk, { serveStdio, StdioServerTransport }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('@modelcontextprotocol/server/stdio'),
  ])
  const transport = new StdioServerTransport()
  const left = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve).once('close', resolve)
    process.stdout.once('error', () => resolve())
  })
  const serving = serveStdio(({ era }) => makeServer({ sdk, key, report, runtime, options, era }), {
    transport,
    onerror: report,
  })
  await left
  await serving.close()
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error.message : String(error), { type: 'LegateWarning' })
}
