import { look, lookWith, type Node, type TreeReader, type Turn } from '../../../doors/rows.ts'
import type { Id } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk, DeskRows } from '../../desk/desk.ts'
import { findNodes, findRun, onlyMatch, shownId } from '../../store/find-run.ts'
import { serverNamed, withDesk } from '../../store/open-desk.ts'
import { standardInput } from '../../terminal/ask-line.ts'
import { oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'
import { nodeLine } from '../../watch/tree-rows.ts'
import { neededCode } from '../../watch/words.ts'
import { continueCommand } from '../../worker/verdict.ts'

export async function edit(call: Call): Promise<number> {
  const [ending = '', ...rest] = call.words
  const given = rest.at(-1) ?? ''
  const named = rest.length > 1 ? rest[0] : undefined
  const text = given === '-' ? (await standardInput()).trimEnd() : given
  return withDesk(call, 'write', async (desk) => {
    const turn = await findRun(desk.store, ending)
    const none = `The run ${shownId(turn.id)} has no text input. ${legate(`show ${shownId(turn.id)} --nodes`)} lists its nodes.`
    const node =
      named === undefined
        ? await onlyNode(desk.store, turn, ({ kind }) => kind === 'user_message', none)
        : await findNode(desk.store, turn, named)
    const talk = await desk.conversation(turn.conversationId)
    const run = await talk.history.edit(node.id, text)
    const told = `Message edited. New run: ${shownId(run.id)}. ${await nextStep(call, desk, run.id)}\n`
    await write(isSet(call, 'json') ? jsonLine({ nodeId: node.id, runId: run.id }) : told)
    return EXIT.completed
  })
}

export function retry(call: Call): Promise<number> {
  return withDesk(call, 'write', async (desk) => {
    const [ending = '', named] = call.words
    const turn = await findRun(desk.store, ending)
    const none = `Nothing failed in the run ${shownId(turn.id)}. To get another answer, ask again: ${legate(`edit ${shownId(turn.id)} TEXT`)}.`
    const node =
      named === undefined ? await onlyNode(desk.store, turn, hasFailed, none) : await findNode(desk.store, turn, named)
    const talk = await desk.conversation(turn.conversationId)
    const run = await talk.history.retry(node.id)
    const told = `${shownId(node.id)} is retried in the run ${shownId(run.id)}. ${await nextStep(call, desk, run.id)}\n`
    await write(isSet(call, 'json') ? jsonLine({ nodeId: node.id, runId: run.id }) : told)
    return EXIT.completed
  })
}

const FAILED: readonly Node['state'][] = ['errored', 'rejected', 'uncertain']

/** Tells whether a node was tried and did not end well. Nodes that only waited for it are rerun with it. */
function hasFailed({ state, input, output }: Node): boolean {
  return FAILED.includes(state) || (state === 'finished' && input.delegates === true && output.isError === true)
}

export function fork(call: Call): Promise<number> {
  return withDesk(call, 'write', async (desk) => {
    const [ending = '', named] = call.words
    const turn = await findRun(desk.store, ending)
    const id = shownId(turn.id)
    const none =
      turn.state === 'ended'
        ? `The run ${id} has no last answer in force: it was replaced, or the run ended without one. Name the node to fork at: ${legate(`show ${id} --nodes`)} lists them.`
        : `The run ${id} has no last answer yet. Name the node to fork at, or wait until the run ends.`
    const node =
      named === undefined ? await onlyNode(desk.store, turn, isLastWord, none) : await findNode(desk.store, turn, named)
    const title = textOption(call, 'title')
    const talk = await desk.conversation(turn.conversationId)
    const children = isSet(call, 'rerun') ? 'rerun' : 'reuse'
    const lane = await talk.history.fork(node.id, { children, ...(title === undefined ? {} : { title }) })
    if (isSet(call, 'json')) {
      await write(
        jsonLine({
          conversationId: turn.conversationId,
          nodeId: node.id,
          laneId: lane.id,
          runId: lane.run?.id ?? null,
        }),
      )
      return EXIT.completed
    }
    const next =
      lane.run === null
        ? `It waits for an input: ${await continueLane(call, desk, lane.id)}`
        : `It continues as ${shownId(lane.run.id)}. ${await nextStep(call, desk, lane.run.id)}`
    await write(`Forked at ${shownId(node.id)}: the lane ${shownId(lane.id)}. ${next}\n`)
    return EXIT.completed
  })
}

function isLastWord({ id, kind, purpose, endedAt }: Node, tree: TreeReader): boolean {
  return kind === 'agent_message' && purpose === 'answer' && endedAt !== null && tree.edgesFrom(id).length === 0
}

async function continueLane(call: Call, { store }: Desk, laneId: Id): Promise<string> {
  if (serverNamed(call) !== undefined) return `POST /v1/conversations/${laneId}/messages`
  return neededCode(await lookWith(store, laneId, (tree) => tree.conversation(laneId))) === ''
    ? legate(`chat --continue ${shownId(laneId)}`)
    : `runtime.run(agent, input, { conversationId: '${laneId}' })`
}

/** Finds the node of a run's conversation by the ending of its id. */
export async function findNode(store: DeskRows, { conversationId, id: runId }: Turn, ending: string): Promise<Node> {
  const named = await findNodes(store, ending)
  const own = named.filter((node) => node.conversationId === conversationId)
  if (own.length === 0) {
    const where = named.length === 0 ? 'No node in this store' : 'No node of this conversation'
    const look = `${legate(`show ${shownId(runId)} --nodes`)} lists them.`
    throw new CliError(`${where} has an id that ends in "${oneLine(ending)}". ${look}`, EXIT.usage)
  }
  return onlyMatch(own, ending, nodeLine)
}

/** Returns the only node of a run that fits, or throws with advice. */
export async function onlyNode(
  store: DeskRows,
  turn: Turn,
  fits: (node: Node, tree: TreeReader) => boolean,
  none: string,
): Promise<Node> {
  const found = await look(store, turn.rootId, (tree) =>
    tree.nodesOf(turn.id).filter((node) => node.marks?.replacedBy == null && fits(node, tree)),
  )
  const [first, ...others] = found
  if (first === undefined) throw new CliError(none, EXIT.usage)
  if (others.length === 0) return first
  const lines = found.map((node) => `\n  ${nodeLine(node)}`).join('')
  throw new CliError(`More than one node of ${shownId(turn.id)} matches:${lines}\nName one.`, EXIT.usage)
}

/** Says which command continues a run that no process works on; a server works on its runs by itself. */
export async function nextStep(call: Call, { store }: Desk, runId: Id): Promise<string> {
  if (serverNamed(call) !== undefined) {
    return `Follow it with: ${legate(`log -f ${shownId(runId)}`)}`
  }
  const rootId = (await store.rootOf(runId)) ?? ''
  const root = await look(store, rootId, (tree) => tree.conversation(rootId))
  const file = neededCode(root) === '' ? undefined : 'FILE'
  return `Continue with: ${continueCommand(file)(runId)}`
}
