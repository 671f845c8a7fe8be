import { statSync } from 'node:fs'
import { atThisMachine } from '../../doors/grant.ts'
import { diskFiles } from '../../doors/tools.ts'
import { type AnyAgent, createRuntime, InputError, type Principal, type Runtime, type Store } from '../../index.ts'
import { serveAcp } from '../../server/protocols/acp/index.ts'
import { type Call, CliError, EXIT, textOption } from '../command/command.ts'
import { legate, withPlaces } from '../command/next-command.ts'
import { sessionFolder, sessionStore } from '../serve/folder-store.ts'
import { loadOffered } from '../serve/offered-agents.ts'
import { nameStore, storeOf } from '../store/open-store.ts'
import { oneLine } from '../terminal/clean.ts'
import { continueWithoutReader } from '../terminal/output.ts'

/** The person at the editor. What an agent asks is asked there. */
const PERSON: Principal = atThisMachine({
  id: 'local',
  scopes: ['start', 'read', 'cancel', 'approve', 'approve:always', 'history'],
})

/** Speaks ACP with an editor over stdin and stdout until it leaves, and works on the runs of its sessions. */
export async function acp(call: Call): Promise<number> {
  const { store: own, files: _, ...offered } = await loadOffered(call)
  const agent = chosen(offered.agents, textOption(call, 'agent'))
  const store = storeOf(call, own)
  nameStore(store)
  const runtimes = new Map<string, Runtime>()
  /** Each folder of the editor is the workspace of a runtime of its own, which works on the sessions of that folder. */
  const runtimeFor = async (folder: string) => {
    const known = runtimes.get(folder)
    if (known !== undefined) return known.as(PERSON)
    requireFolder(folder)
    const files = diskFiles({ workspace: folder })
    const made = createRuntime({ ...offered, files, store: sessionStore(shared(store), { folder, owner: PERSON.id }) })
    runtimes.set(folder, made)
    await made.resume()
    return made.as(PERSON)
  }
  const folderOf = async (id: string) => (await sessionFolder(store, id)) ?? null
  continueWithoutReader()
  try {
    await Promise.race([serveAcp({ agent, runtimeFor, folderOf, commands: withPlaces }), signalled()])
    return EXIT.completed
  } finally {
    for (const runtime of runtimes.values()) await runtime.close()
    await store.close()
  }
}

/** The workspace of a runtime is made where it is missing: an editor that names a wrong folder would never hear of it. */
function requireFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  throw new InputError('invalid_input', `There is no folder ${folder}: open the session in a folder that exists.`)
}

/** A store that several runtimes have: none of them closes it. */
function shared(store: Store): Store {
  return { ...store, close: async () => undefined }
}

function chosen(agents: readonly AnyAgent[], name: string | undefined): AnyAgent {
  const found = name === undefined ? agents : agents.filter((agent) => agent.name === name)
  const [agent, other] = found
  if (agent !== undefined && other === undefined) return agent
  const names = agents.map((one) => oneLine(one.name)).join(', ')
  if (agents.length === 0) throw new CliError(`Name the agent: ${legate('acp FILE')}, or --module FILE.`, EXIT.usage)
  const trouble = name === undefined ? '' : `There is no agent "${oneLine(name)}". `
  throw new CliError(`${trouble}Choose one with --agent: ${names}.`, EXIT.usage, { namesHelp: false })
}

/** Resolves at the first signal. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}
