import { agent, type ConversationHandle, type Id, type Runtime } from 'legate'
import type { Node } from 'legate/rows'
import { countEffect, crashWorker, scriptedModel } from 'legate/testing'
import type { LocalStore } from '../../../src/core/store/store.ts'
import { localStore } from '../../support/rows.ts'
import { call, counted, QUICK, recorded, roundsOf, steppingModel } from './parts.ts'

/** A history that is changed in every way: each change is one commit, made once, whatever is killed between. */
const hand = agent({
  name: 'hand',
  instructions: 'Work.',
  tools: { book: counted('book', 'idempotent') },
  model: steppingModel({ calls: [call('book')] }),
})

const boss = agent({
  name: 'boss',
  instructions: 'Delegate.',
  subagents: [hand],
  model: scriptedModel(async ({ messages, path }) => {
    await countEffect('model', path.join('/'))
    const isFirst = messages.findLast(({ role }) => role === 'user')?.content === 'One.'
    return isFirst && messages.at(-1)?.role === 'user' ? { calls: [call('call_hand', { message: 'a' })] } : 'Done.'
  }),
})

await crashWorker({
  options: { agents: [boss], engine: QUICK, kinds: { check: { execute: () => 'checked' } } },
  drive: async ({ runtime }) => {
    const store = localStore(runtime)
    if ((await roundsOf(store, 'story')).length === 0) await recorded(runtime.run(boss, 'One.', { title: 'story' }))
    const rootId = (await roundsOf(store, 'story'))[0]?.conversationId ?? ''
    const talk = await runtime.conversation(rootId)
    const find = (kind: string, turn: number) => nodeOf(store, rootId, { kind, turn })
    const allEnd = async () => {
      for (const { id } of store.openTurns(100)) if (!isChecked(store, id)) await (await runtime.attach(id)).result
    }
    /** What a change has recorded of itself says whether it was made. */
    const once = async (change: string, make: () => Promise<unknown>) => {
      if (!changesOf(store, rootId).includes(change)) await make()
      await allEnd()
    }
    await allEnd()
    await once('rerun', () => talk.history.rerun(find('agent_message', 0).id))
    if ((await roundsOf(store, 'story')).length < 3)
      await recorded(runtime.run(boss, 'Two.', { conversationId: rootId }))
    await allEnd()
    await once('edit', () => talk.history.edit(find('user_message', 2).id, 'Three.'))
    await once('adopt', () => talk.history.adopt(find('agent_message', 2).id))
    await once('fork', () => talk.history.fork(find('task', 1).id, { key: 'left', children: 'rerun' }))
    const [lane] = await talk.history.lanes()
    await once('merge', () => talk.history.merge([lane?.id ?? '']))
    const first = find('user_message', 1)
    await once('by_hand', () => talk.history.compress({ toRunId: first.turnId, summary: 'It began.' }))
    await once('undone', () => talk.history.uncompress(find('summary', 1).id))
    await once('compact', () => talk.history.compact(find('user_message', 2).turnId))
    await once('exclude', () => talk.history.exclude(first.id))
    await once('include', () => talk.history.include(first.id))
    await once('delete', () => talk.history.softDelete(first.id))
    await once('restore', () => talk.history.restore(first.id))

    await checkAll(runtime, talk)
    for (const { id } of store.openTurns(100)) await (await runtime.attach(id)).result
    await once('archive', () => talk.history.archive())
  },
})

/** Three checks that wait for a person: one is denied and tried again, one is stopped, one is left out. */
async function checkAll(runtime: Runtime, talk: ConversationHandle): Promise<void> {
  const store = localStore(runtime)
  const isMade = (change: string) => changesOf(store, talk.id).includes(change)
  if (!isMade('node')) await talk.mutate(putChecks)
  const checks = (await roundsOf(store, 'story')).flatMap(({ id }) =>
    store.nodesOf(id).filter(({ kind }) => kind === 'check'),
  )
  const [denied = '', stopped = '', skipped = ''] = checks.map(({ id }) => id)
  if (!isMade('stop')) await talk.history.stop(stopped)
  if (!isMade('skip')) await talk.history.skip(skipped)
  const isAsked = store.node(denied)?.state === 'awaiting_approval'
  if (isAsked && !isMade('retry')) await runtime.answer(denied, { allow: false })
  if (!isMade('retry')) await talk.history.retry(denied)
  for (const { nodeId } of await runtime.approvals()) await runtime.answer(nodeId, { allow: true })
}

function putChecks(graph: Parameters<Parameters<ConversationHandle['mutate']>[0]>[0]): void {
  const metadata = { approval: { required: true, request: 'check' } }
  const [asked] = [1, 2, 3].map(() =>
    graph.createNode({ kind: 'check', state: 'awaiting_approval', effect: 'pure', metadata }),
  )
  const after = graph.createNode({ kind: 'check', effect: 'pure' })
  graph.createEdge(asked?.id ?? '', after.id, 'dependency')
}

/** Does a person have a part in it? */
function isChecked(store: LocalStore, turnId: Id): boolean {
  return store.nodesOf(turnId).some(({ kind }) => kind === 'check')
}

function changesOf(store: LocalStore, rootId: Id): string[] {
  const events = store.events(rootId, 0, 100_000)
  return events.flatMap(({ body }) => (body.type === 'graph-change' || body.type === 'compaction' ? [body.change] : []))
}

/** The last node of a kind in one of the first lane's turns. */
function nodeOf(store: LocalStore, rootId: Id, { kind, turn }: { readonly kind: string; readonly turn: number }): Node {
  const { id } = store.turnsOf(rootId, { limit: 100 })[turn] ?? { id: '' }
  const found = store.nodesOf(id).findLast((node) => node.kind === kind)
  if (found === undefined) throw new Error(`turn ${turn} has no ${kind}`)
  return found
}
