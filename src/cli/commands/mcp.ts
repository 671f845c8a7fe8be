import { atThisMachine } from '../../doors/grant.ts'
import { createRuntime, type Principal } from '../../index.ts'
import { serveMcp, signingKey } from '../../server/protocols/mcp/index.ts'
import { type Call, CliError, EXIT, isSet } from '../command/command.ts'
import { legate, withPlaces } from '../command/next-command.ts'
import { folderStore } from '../serve/folder-store.ts'
import { loadOffered } from '../serve/offered-agents.ts'
import { agentsWithoutModel } from '../serve/offered-models.ts'
import { splitPrompts } from '../serve/offered-prompts.ts'
import { nameStore, storeOf } from '../store/open-store.ts'
import { oneLine } from '../terminal/clean.ts'
import { continueWithoutReader, note } from '../terminal/output.ts'

/** Serves agents as MCP tools over stdin and stdout until the client leaves, and works on their runs. */
export async function mcp(call: Call): Promise<number> {
  const { prompts, words } = await splitPrompts(call)
  const { store: own, ...offered } = await loadOffered({ ...call, words })
  if (prompts.length + offered.agents.length === 0) {
    throw new CliError(`Name what to offer: ${legate('mcp FILE')}, or --module FILE.`, EXIT.usage)
  }
  const store = storeOf(call, own)
  nameStore(store)
  const runtime = createRuntime({ ...offered, store: folderStore(store) })
  continueWithoutReader()
  try {
    await runtime.resume()
    const silent = await agentsWithoutModel(offered)
    if (silent !== undefined) note(`legate: warning: ${silent}`)
    const key = await signingKey(store)
    const names = [...offered.agents.map(({ name }) => name), ...prompts.flatMap(({ agent = [] }) => agent)]
    const served = serveMcp(runtime.as(principalOf(call, names)), {
      key,
      prompts,
      manage: isSet(call, 'manage'),
      report: noteError,
      commands: withPlaces,
    })
    await Promise.race([served, signalled()])
    return EXIT.completed
  } finally {
    await runtime.close()
  }
}

/**
 * The client works for the user of this machine, and sees runs of the agents that it is offered. It allows nothing unless the user
 * said so: its model may be the one who asks.
 */
function principalOf(call: Call, agents: readonly string[]): Principal {
  const approve = isSet(call, 'approve') ? (['approve', 'approve:model'] as const) : []
  return atThisMachine({ id: 'local', scopes: ['start', 'read', 'cancel', ...approve], agents: [...agents] })
}

function noteError(error: unknown): void {
  note(`legate: ${oneLine(error instanceof Error ? error.message : String(error))}`)
}

/** Resolves at the first signal. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}
