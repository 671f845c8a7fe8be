import { agent, createRuntime, type Principal, type Runtime } from 'legate'
import { narrowPrincipal, SCOPES } from 'legate/grant'
import { scriptedModel } from 'legate/testing'
import { expect } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'

// What a narrower principal of the same id may not reach, on any store.

const LEA: Principal = { id: 'lea', scopes: [...SCOPES] }
const ROOT: Principal = { id: 'root', scopes: [...SCOPES], sees: 'all' }
/** The agents stand above: what a principal says of itself is not all that holds. */
const NARROW = narrowPrincipal({ ...LEA, agents: ['clerk'] }, { id: 'lea', scopes: [...SCOPES] })
const OVERSEER = narrowPrincipal({ ...ROOT, agents: ['clerk'] }, { id: 'root', scopes: [...SCOPES], sees: 'all' })

function speaker(name: string) {
  const usage = { inputTokens: 60, outputTokens: 40 }
  return agent({ name, instructions: 'Speak.', model: scriptedModel(() => ({ text: 'done', usage })) })
}

export type NarrowLaw = readonly [title: string, check: (runtime: Runtime) => Promise<void>]

/** A runtime for one law. */
export function narrowWorld(store: Store): Runtime {
  return createRuntime({ store, agents: [speaker('clerk'), speaker('other')] })
}

async function runOf(runtime: Runtime, by: Principal, name: string, options: object = {}) {
  return runtime.as(by).run(name, 'Hello.', options).result
}

function failure(work: Promise<unknown>): Promise<{ code: string; message: string; details: object }> {
  return work.then(
    () => ({ code: 'none', message: 'It was done.', details: {} }),
    ({ code, message, details }) => ({ code, message, details }),
  )
}

const today = () => {
  const day = new Date().toISOString().slice(0, 10)
  return { from: day, to: day }
}

export const narrowLaws: readonly NarrowLaw[] = [
  [
    'prune deletes and counts trees of its agents only, for one owner, some or all',
    async (runtime) => {
      const others = [await runOf(runtime, LEA, 'other'), await runOf(runtime, { ...ROOT, id: 'bob' }, 'other')]
      const own: string[] = []
      for (let count = 0; count < 3; count++) own.push((await runOf(runtime, LEA, 'clerk')).conversationId)
      const later = await runOf(runtime, LEA, 'other')
      const narrow = runtime.as(NARROW)
      const ids = (stones: readonly { rootId: string }[]) => stones.map(({ rootId }) => rootId)

      expect(ids(await narrow.prune({ keep: 0, dryRun: true })).sort()).toEqual([...own].sort())
      expect(ids(await narrow.prune({ keep: 2, owner: 'lea' }))).toEqual(own.slice(0, 1))
      expect(ids(await runtime.as({ ...NARROW, sees: ['lea', 'bob'] }).prune({ keep: 1 }))).toEqual(own.slice(1, 2))
      expect(ids(await runtime.as(OVERSEER).prune({ olderThanMs: 0 }))).toEqual(own.slice(2))
      expect(await runtime.as(OVERSEER).prune({ keep: 0 })).toEqual([])

      const left = (await runtime.store.roots({ limit: 9 })).map(({ id }) => id)
      expect(left.sort()).toEqual([...others, later].map(({ conversationId }) => conversationId).sort())
      expect(ids(await runtime.as(ROOT).prune({ keep: 0 })).sort()).toEqual(left)
    },
  ],
  [
    'ids, lists, usage and deleted trees of other agents are not there, whoever of the line names its agents',
    async (runtime) => {
      const [own, other] = [await runOf(runtime, LEA, 'clerk'), await runOf(runtime, LEA, 'other')]
      const lost = await runOf(runtime, LEA, 'other')
      await runtime.forget(lost.conversationId)
      for (const narrow of [runtime.as(NARROW), runtime.as(OVERSEER)]) {
        const found = async (id: string) => (await narrow.find(id.slice(-10))).found.map((one) => one.id)
        expect(await found(own.runId)).toContain(own.runId)
        expect(await found(other.runId)).toEqual([])
        expect(await narrow.find(lost.runId.slice(-10))).toEqual({ found: [], deleted: null })
        expect((await narrow.usageByDay(today())).map(({ agent: name }) => name)).toEqual(['clerk', 'clerk'])
        expect((await narrow.trees({ limit: 1 })).trees.map(({ rootId }) => rootId)).toEqual([own.conversationId])
        expect(await failure(narrow.attach(lost.runId))).toEqual({
          ...(await failure(narrow.attach(UNKNOWN))),
          message: `There is no run ${lost.runId} in this store.`,
        })
      }
      const wide = runtime.as(ROOT)
      expect((await wide.find(other.runId.slice(-10))).found.map(({ id }) => id)).toContain(other.runId)
      expect((await wide.find(lost.runId.slice(-10))).deleted).toMatchObject({ id: lost.runId })
      expect((await wide.usageByDay(today())).map(({ agent: name }) => name).sort()).toEqual([
        ...['clerk', 'clerk', 'other', 'other'],
      ])
      expect((await failure(runtime.as(LEA).attach(lost.runId))).message).toContain('was deleted')
    },
  ],
  [
    'the key of a run that it does not see tells nothing of that run, open, ended or deleted',
    async (runtime) => {
      const [first, lost] = [
        await runOf(runtime, LEA, 'other', { key: 'k1' }),
        await runOf(runtime, LEA, 'other', { key: 'k2' }),
      ]
      await runtime.forget(lost.conversationId)
      const reader: Principal = { ...LEA, sees: ['lea', 'bob'] }
      const { conversationId } = await runOf(runtime, { ...ROOT, id: 'bob' }, 'clerk')
      await runOf(runtime, reader, 'clerk', { key: 'k3', conversationId })
      const taken = { code: 'conflict', message: 'This key is used already: use a new key.', details: {} }

      expect(await failure(runOf(runtime, NARROW, 'clerk', { key: 'k1' }))).toEqual(taken)
      expect(await failure(runOf(runtime, NARROW, 'clerk', { key: 'k2' }))).toEqual(taken)
      // The very same request by who does not see its conversation: an answer would be a run of Bob's.
      const blind = runtime.as(LEA).run('clerk', 'Hello.', { key: 'k3', conversationId })
      expect(await failure(blind.result)).toEqual(taken)
      const read = async () => {
        const words: unknown[] = []
        for await (const event of blind) words.push(event)
        return words
      }
      expect(await failure(read())).toEqual(taken)

      expect((await failure(runOf(runtime, LEA, 'clerk', { key: 'k1' }))).message).toContain(first.runId)
      expect((await failure(runOf(runtime, LEA, 'other', { key: 'k2' }))).code).toBe('deleted')
      expect((await runOf(runtime, LEA, 'other', { key: 'k1' })).runId).toBe(first.runId)
      expect((await runOf(runtime, reader, 'clerk', { key: 'k3', conversationId })).status).toBe('completed')
    },
  ],
  [
    'what concerns all trees of an owner, or of the store, is not for who sees some agents only',
    async (runtime) => {
      const other = await runOf(runtime, LEA, 'other')
      const clerks = await runOf(runtime, LEA, 'clerk')
      const overseer = runtime.as(OVERSEER)
      for (const work of [overseer.forgetOwner('lea'), overseer.audit(), overseer.processes()]) {
        expect((await failure(work)).code).toBe('denied')
      }
      expect((await runtime.as(ROOT).audit()).findings).toEqual([])
      expect(await runtime.as(ROOT).processes()).toHaveLength(1)
      expect((await overseer.audit({ rootId: clerks.conversationId })).findings).toEqual([])

      const lines = async (id: string) => {
        const all: string[] = []
        for await (const line of runtime.export(id)) all.push(line)
        return all
      }
      const [hidden, seen] = [await lines(other.conversationId), await lines(clerks.conversationId)]
      for (const { conversationId } of [other, clerks]) await runtime.forget(conversationId)
      const bob = runtime.as({ ...ROOT, id: 'bob', sees: 'own' })
      expect((await failure(overseer.import(hidden))).message).toContain('root would not see the tree')
      expect((await failure(bob.import(seen))).message).toContain('bob would not see the tree')
      expect(await runtime.store.roots({ limit: 9 })).toEqual([])
      expect(await overseer.import(seen)).toBe(clerks.conversationId)
      expect(await runtime.as(LEA).import(hidden)).toBe(other.conversationId)
    },
  ],
]

const UNKNOWN = '01900000-0000-7000-8000-00000000dead'
