import { Readable, Writable } from 'node:stream'
import { code, type OptionRule, type OptionRules, readOptions } from '../../../core/base/options.ts'
import { type AnyAgent, isAgent, type ScopedRuntime } from '../../../index.ts'
import { makeAgent } from './serving.ts'

/** How an agent is offered to an editor. */
export interface AcpOptions {
  /** The agent, or its name. With the agent itself, MCP servers of the editor join its tools: the person is asked before each starts. */
  readonly agent: AnyAgent | string
  /** The runtime of a folder that the editor works in, as the person at the editor may use it. */
  readonly runtimeFor: (folder: string) => Promise<ScopedRuntime> | ScopedRuntime
  /**
   * The folder of a session; null for a conversation that belongs to none. A session is loaded and listed in its own folder and in
   * no other. Default: sessions belong to every folder.
   */
  readonly folderOf?: (sessionId: string) => Promise<string | null> | string | null
  /**
   * Completes the commands of the command line in texts for the person, such as `legate answer 1f0c9a2e TEXT`: with the store that
   * they need, for example. Default: they stay as they are.
   */
  readonly commands?: (text: string) => string
}

const agentOrName: OptionRule = (value) =>
  typeof value === 'string' || isAgent(value) ? null : 'an agent, or its name'

const OPTIONS: OptionRules<AcpOptions> = { agent: agentOrName, runtimeFor: code, folderOf: code, commands: code }

/**
 * Speaks ACP with an editor over stdin and stdout, which nothing else may write to. Resolves when the editor has left; runs go on
 * until their runtime is closed.
 */
export async function serveAcp(options: AcpOptions): Promise<void> {
  const { agent, runtimeFor, folderOf, commands } = readOptions('serveAcp(options)', options, OPTIONS)
  const sdk = await import('@agentclientprotocol/sdk')
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>
  const app = makeAgent({ sdk, agent, runtimeFor: async (folder) => runtimeFor(folder), folderOf, commands })
  await app.connect(sdk.ndJsonStream(output, input)).closed
}
