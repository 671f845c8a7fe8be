import { EMPTY_AGENT_FILE } from '../../doors/recipe.ts'
import type { Id } from '../../index.ts'
import type { LegateClient } from '../../server/client/index.ts'
import { type Call, CliError, EXIT, isSet, listOption, textOption } from '../command/command.ts'
import { legate } from '../command/next-command.ts'
import { callGrant } from '../definition/call-grant.ts'
import { inputFor } from '../definition/input.ts'
import type { Desk } from '../desk/desk.ts'
import { remoteDesk } from '../desk/remote-desk.ts'
import { shownId } from '../store/find-run.ts'
import { asCliErrors } from '../store/open-desk.ts'
import { continueWithoutReader, writeExactly } from '../terminal/output.ts'
import { viewFor } from '../watch/view.ts'
import { respondersFor } from '../worker/inline-ask.ts'
import { lastAnswer, reportFailure } from '../worker/verdict.ts'
import { Worker } from '../worker/worker.ts'

/** Starts an agent of a server by its name, shows its progress, and prints the answer. */
export function runOnServer(call: Call, client: LegateClient): Promise<number> {
  return asCliErrors(async () => {
    const [name = ''] = call.words
    refuseLocalOptions(call, name)
    const { deny = [] } = callGrant(call)
    const input = await inputOn(call, client, name)
    const body = { agent: name, input, ...(deny.length === 0 ? {} : { grant: { deny } }) }
    const { runId } = await client.request<{ readonly runId: Id }>('/v1/runs', { method: 'POST', body })
    return follow(call, remoteDesk(client), runId)
  })
}

const LOCAL_OPTIONS = ['model', 'module', 'agent', 'compat']

function refuseLocalOptions(call: Call, name: string): void {
  if (name === '') throw new CliError(`missing NAME: ${legate('run NAME [TEXT]')}.`, EXIT.usage)
  const given = LOCAL_OPTIONS.find((option) => textOption(call, option) !== undefined)
  const option = given ?? ['param', 'allow'].find((one) => listOption(call, one).length > 0)
  if (option === undefined) return
  if (option === 'allow')
    throw new CliError('--allow is for files: what an agent of a server may do, its server says.', EXIT.usage)
  throw new CliError(`--${option} is for files of this machine: a server has its own agents.`, EXIT.usage)
}

/** Finds the input as for an agent in code: JSON where the agent has a schema for it. */
async function inputOn(call: Call, client: LegateClient, name: string) {
  const path = `/v1/agents/${encodeURIComponent(name)}`
  const { input } = await client.request<{ readonly input: unknown }>(path)
  return inputFor({ ...EMPTY_AGENT_FILE, name, file: name, input: input === null ? null : {} }, call)
}

/** The server decides what it has code for. */
const ALL_AGENTS: ReadonlySet<string> = Object.assign(new Set<string>(), { has: () => true })

async function follow(call: Call, desk: Desk, runId: Id): Promise<number> {
  const isJson = isSet(call, 'json')
  const view = viewFor(desk, {
    json: isJson,
    env: call.env,
    hint: 'Ctrl-C stops',
    isBeside: true,
    isAllowed: isSet(call, 'yes'),
  })
  const goOn = (id: Id) => legate(`log -f ${shownId(id)}`)
  const worker = new Worker({
    desk,
    view,
    knownAgents: () => ALL_AGENTS,
    lastSeqs: new Map(),
    askers: respondersFor(call, desk, view),
    ended: (one) => reportFailure(desk, one, goOn),
    goOn,
    stopsAll: true,
  })
  continueWithoutReader()
  const run = await desk.attach(runId)
  await worker.follow([run])
  const code = worker.end()
  if (!isJson) await writeExactly(await lastAnswer(desk, run))
  return code
}
