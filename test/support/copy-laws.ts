import { type Agent, agent, createRuntime, type RunEvent, type Runtime, tool } from 'legate'
import { backgroundSubagents } from 'legate/background'
import type { Tombstone } from 'legate/rows'
import { scriptedModel } from 'legate/testing'
import { expect, onTestFinished, test } from 'vitest'
import type { Store } from '../../src/core/store/store.ts'
import { tempFolder } from './temp-folder.ts'

type OpenStore = (folder: string) => Store

const search = agent({
  name: 'search',
  description: 'Searches.',
  instructions: '',
  model: scriptedModel(() => 'Found.'),
})
const long = tool({
  description: 'Reads much.',
  input: { type: 'object' },
  effect: 'pure',
  execute: () => 'long '.repeat(15_000),
})
const deploy = tool({
  description: 'Deploys.',
  input: { type: 'object' },
  approval: 'required',
  execute: () => 'deployed',
})
/** Delegates and reads much, or waits for a person before it deploys. */
export const lead: Agent = agent({
  name: 'lead',
  instructions: '',
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === 'tool') return 'Done.'
    if (last?.content === 'deploy') return { calls: [{ name: 'deploy', input: {} }] }
    return {
      calls: [
        { name: 'search', input: { message: 'x' } },
        { name: 'long', input: {} },
      ],
    }
  }),
  subagents: { search },
  tools: { long, deploy, ...backgroundSubagents({ agent: search }) },
})

/** A runtime on a store of its own, closed after the test. */
export function open(make: OpenStore, folder: string): Runtime {
  const runtime = createRuntime({ store: make(folder), agents: [lead] })
  onTestFinished(() => runtime.close())
  return runtime
}

/** The lines of its export. Each kind of store has an order of its own for the rows of a tree. */
async function textIn(runtime: Runtime, id: string): Promise<string> {
  const lines: string[] = []
  for await (const line of runtime.export(id)) lines.push(line)
  return lines.toSorted().join('\n')
}

async function rootsIn({ store }: Runtime): Promise<string[]> {
  return (await store.roots({ limit: 1_000 })).map(({ id }) => id).sort()
}

async function stonesIn({ store }: Runtime): Promise<readonly Tombstone[]> {
  return (await store.archive?.tombstones()) ?? []
}

async function findingsIn(runtime: Runtime): Promise<string[]> {
  return (await runtime.audit({ verify: true })).findings.map(({ message }) => message)
}

async function parked(run: AsyncIterable<RunEvent>): Promise<string> {
  for await (const event of run) if (event.type === 'approval-request') return event.nodeId ?? ''
  throw new Error('It asked nobody.')
}

const NOTHING = { copied: 0, renewed: 0, there: 0, ahead: 0, tombstones: 0, deleted: 0, nodes: 0, refused: [] }

/** What a copy from a store of one kind to one of another must do. Each folder has a store of its own. */
export function copyLaws(from: OpenStore, to: OpenStore): void {
  function two(): { first: Runtime; second: Runtime; places: readonly [string, string] } {
    const places = [tempFolder(), tempFolder()] as const
    return { first: open(from, places[0]), second: open(to, places[1]), places }
  }

  test('has all trees byte for byte, with tombstones and open runs, which go on there', async () => {
    const { first, second, places } = two()
    for (const text of ['a', 'b', 'c']) await first.run(lead, text, { owner: `of ${text}` }).result
    const gone = await first.run(lead, 'd').result
    await first.forget(gone.conversationId, 'asked for')
    const waiting = first.run(lead, 'deploy')
    await parked(waiting)
    await first.close().catch(() => undefined)
    waiting.result.catch(() => undefined)
    const source = open(from, places[0])
    const report = await second.copyFrom(source.store)
    expect(report).toMatchObject({ ...NOTHING, copied: 4, tombstones: 1, nodes: expect.any(Number) })
    expect(report.nodes).toBeGreaterThan(20)
    expect(await rootsIn(second)).toEqual(await rootsIn(source))
    for (const id of await rootsIn(source)) expect(await textIn(second, id)).toBe(await textIn(source, id))
    expect(await stonesIn(second)).toEqual(await stonesIn(source))
    expect(await findingsIn(second)).toEqual([])
    await expect(second.attach(gone.runId)).rejects.toThrow('was deleted at')
    expect(await second.copyFrom(source.store)).toEqual({ ...NOTHING, there: 4 })

    await second.resume()
    const nodeId = await parked(await second.attach(waiting.id))
    await second.answer(nodeId, { allow: true })
    expect(await (await second.attach(waiting.id)).result).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await second.copyFrom(source.store)).toEqual({ ...NOTHING, there: 3, ahead: 1 })
    expect(await findingsIn(second)).toEqual([])
  })

  test('that is made again takes what is new: runs, turns, an open run that ended, and deletions', async () => {
    const { first, second } = two()
    const talk = first.run(lead, 'a')
    await talk.result
    const doomed = await first.run(lead, 'b').result
    const later = await first.run(lead, 'c').result
    const asked = first.run(lead, 'deploy')
    const nodeId = await parked(asked)
    expect(await second.copyFrom(first.store)).toMatchObject({ copied: 4 })
    // Deleted on the other side, by its own wish.
    await second.forget(later.conversationId)

    await first.answer(nodeId, { allow: true })
    await asked.result
    await first.run(lead, 'more', { conversationId: talk.conversationId }).result
    await first.run(lead, 'e').result
    await first.forget(doomed.conversationId)
    const report = await second.copyFrom(first.store)
    expect(report).toMatchObject({ copied: 1, renewed: 2, there: 0, ahead: 1, tombstones: 0, deleted: 1, refused: [] })
    const ids = (await rootsIn(first)).filter((id) => id !== later.conversationId)
    expect(await rootsIn(second)).toEqual(ids)
    for (const id of ids) expect(await textIn(second, id)).toBe(await textIn(first, id))
    expect(await findingsIn(second)).toEqual([])
    expect((await stonesIn(second)).map(({ rootId }) => rootId).sort()).toEqual(
      [later.conversationId, doomed.conversationId].sort(),
    )
    // A tree that was renewed goes on like any other.
    expect(await second.run(lead, 'on', { conversationId: talk.conversationId }).result).toMatchObject({
      text: 'Done.',
    })
    expect(await findingsIn(second)).toEqual([])
  })

  test('stops where a tree went on in both stores, and changes nothing of it', async () => {
    const { first, second } = two()
    const { conversationId } = await first.run(lead, 'a').result
    await second.copyFrom(first.store)
    await first.run(lead, 'here', { conversationId }).result
    await second.run(lead, 'there', { conversationId }).result
    const before = await textIn(second, conversationId)
    await expect(second.copyFrom(first.store)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`a different tree of the id ${conversationId}`),
    })
    expect(await textIn(second, conversationId)).toBe(before)
    expect(await findingsIn(second)).toEqual([])
  })

  test('survives its own end in the middle', async () => {
    const { first, second, places } = two()
    for (const text of ['a', 'b', 'c', 'd']) await first.run(lead, text).result
    const stop = new Error('ended')
    const progress = ({ copied }: { copied: number }) => {
      if (copied === 2) throw stop
    }
    await expect(second.copyFrom(first.store, { progress })).rejects.toBe(stop)
    await second.close()
    const again = open(to, places[1])
    expect(await again.copyFrom(first.store)).toMatchObject({ copied: 2, there: 2 })
    expect(await rootsIn(again)).toEqual(await rootsIn(first))
  })
}
