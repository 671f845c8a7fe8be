import type { Tombstone } from '../../../doors/rows.ts'
import { memoryTools } from '../../../doors/tools.ts'
import { agent, type RuntimeOptions } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk } from '../../desk/desk.ts'
import { loadOffered } from '../../serve/offered-agents.ts'
import { findRunIds, onlyMatch, refuseDeleted, removalText, shownId } from '../../store/find-run.ts'
import { serverNamed, withDesk } from '../../store/open-desk.ts'
import { withRuntime } from '../../store/open-store.ts'
import { plural } from '../../terminal/amounts.ts'
import { askLine, canAsk } from '../../terminal/ask-line.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'
import { timeOf } from './time.ts'

/** The length of an id with its dashes. */
const WHOLE_ID = 36

/** Deletes one tree, or everything of an owner, and reports what was deleted. */
export function forget(call: Call): Promise<number> {
  const owner = textOption(call, 'owner')
  const [ending] = call.words
  if (owner !== undefined && ending !== undefined) {
    throw new CliError('forget deletes one run, or everything of an owner: give ID or --owner.', EXIT.usage)
  }
  if (owner !== undefined) return forgetOwner(call, owner)
  if (ending === undefined)
    throw new CliError(`missing ID: ${legate('forget ID')}, or ${legate('forget --owner ID')}.`, EXIT.usage)
  return forgetTree(call, ending)
}

async function forgetOwner(call: Call, owner: string): Promise<number> {
  const name = oneLine(owner)
  if (owner === '') throw new CliError('--owner is empty: name the owner.', EXIT.usage)
  if (!isSet(call, 'yes')) await confirm(name)
  const act = async (desk: Pick<Desk, 'forgetOwner'>) => {
    const gone = await desk.forgetOwner(owner, textOption(call, 'reason') ?? 'Forgotten from the command line.')
    const { trees, cancelled, files } = gone
    const told = `Everything of ${name} is deleted: ${plural(trees, 'tree')}, ${plural(cancelled, 'open run')} cancelled, ${plural(files, 'file')}, its tokens, webhooks and counters.\n`
    await write(isSet(call, 'json') ? jsonLine(gone) : told)
    return EXIT.completed
  }
  if (serverNamed(call) === undefined) return withRuntime(call, 'write', act, await placesOf(call))
  if (textOption(call, 'module') === undefined) return withDesk(call, 'write', act)
  throw new CliError('--module is for a store of this machine: the server knows its agents.', EXIT.usage)
}

/** The options that tell a runtime where owners keep things: the files of this folder, the usual memory, and the options of a module. */
async function placesOf(call: Call): Promise<Pick<RuntimeOptions, 'agents' | 'files'>> {
  const { agents, files } = await loadOffered({ ...call, words: [] })
  const usual = agent({ name: 'the usual memory', instructions: '', tools: memoryTools() })
  return { agents: [...agents, usual], ...(files === undefined ? {} : { files }) }
}

/** Nothing brings it back, so a person must say so. */
async function confirm(owner: string): Promise<void> {
  const how = `This cancels and deletes everything of ${owner}, for good`
  if (!canAsk()) throw new CliError(`${how}. Say that you mean it: --yes.`, EXIT.usage, { namesHelp: false })
  const typed = await askLine(`${how}. Type the name to go on: `)
  if (typed.trim() !== owner) throw new CliError('Nothing was deleted.')
}

function forgetTree(call: Call, ending: string): Promise<number> {
  return withDesk(call, 'write', async (desk) => {
    const found = (await findRunIds(desk.store, ending)).filter(({ type }) => type !== 'node')
    if (found.length === 0) await refuseDeleted(desk.store, ending)
    // The rows that lead to a tree may be missing; the full id still names it.
    const isWhole = found.length === 0 && ending.length === WHOLE_ID
    const id = isWhole ? ending : onlyMatch(found, ending, (one) => `${one.id}  ${one.type}`).id
    const stone = await desk.forget(id, textOption(call, 'reason') ?? 'Forgotten from the command line.')
    await write(isSet(call, 'json') ? jsonLine(stone) : `deleted: ${lineOf(stone)}\n`)
    return EXIT.completed
  })
}

/** Deletes trees beyond the limits of number or age and reports what was deleted. */
export function prune(call: Call): Promise<number> {
  const options = {
    ...optionalNumber('keep', keepOf(textOption(call, 'keep'))),
    ...optionalNumber('olderThanMs', timeOf('older-than', textOption(call, 'older-than'))),
  }
  if (Object.keys(options).length === 0) {
    throw new CliError(
      `missing --keep or --older-than: ${legate('prune --keep N')}, or --older-than TIME, or both.`,
      EXIT.usage,
    )
  }
  const dryRun = isSet(call, 'dry-run')
  return withDesk(call, dryRun ? 'read' : 'write', async (desk) => {
    const stones = await desk.prune({ ...options, dryRun })
    await write(isSet(call, 'json') ? stones.map(jsonLine).join('') : asText(stones, dryRun))
    return EXIT.completed
  })
}

function optionalNumber(name: string, value: number | undefined): Record<string, number> {
  return value === undefined ? {} : { [name]: value }
}

function keepOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new CliError('--keep is a whole number, such as 1000.', EXIT.usage)
}

function asText(stones: readonly Tombstone[], dryRun: boolean): string {
  const verb = dryRun ? 'would be deleted' : 'deleted'
  const lines = stones.map((stone) => `${verb}: ${lineOf(stone)}\n`)
  if (stones.length === 0) return 'Nothing to delete: no run is beyond these limits.\n'
  const runs = stones.reduce((sum, stone) => sum + runsOf(stone).length, 0)
  const all = `${plural(stones.length, 'tree')} with ${plural(runs, 'run')}`
  return `${lines.join('')}${all} ${dryRun ? 'would be deleted' : 'deleted'}.\n`
}

function lineOf(stone: Tombstone): string {
  const { rootId, agent, reason, conversations } = stone
  const last = conversations.find(({ id }) => id === rootId)?.runs.at(-1) ?? rootId
  return `${shownId(last)} ${oneLine(agent)}, ${plural(runsOf(stone).length, 'run')} (${removalText(reason)})`
}

function runsOf({ conversations }: Tombstone): string[] {
  return conversations.flatMap(({ runs }) => runs)
}
