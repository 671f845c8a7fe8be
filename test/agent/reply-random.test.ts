import { type AnyAgent, agent } from 'legate'
import { scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import type { LocalStore } from '../../src/core/store/store.ts'
import { isFull } from '../crash/support/full.ts'
import { firstSeed, seededRandom } from '../crash/support/random.ts'
import { useWorld } from '../support/agents.ts'
import { type Process, until } from '../support/process.ts'
import { stores } from '../support/stores.ts'

const CASES = isFull ? 500 : 12
const NAMES = ['one', 'two', 'three'] as const

/** A pipeline: each item goes through all stages, so many at a time. Items may be equal. */
interface Pipeline {
  readonly items: readonly string[]
  readonly stages: readonly (typeof NAMES)[number][]
  readonly atOnce: number
  readonly asks: boolean
}

function pipelineOf(random: () => number): Pipeline {
  const upTo = (most: number) => 1 + Math.floor(random() * most)
  const items = Array.from({ length: upTo(8) }, () => `item ${upTo(6)}`)
  const stages = Array.from({ length: upTo(3) }, () => NAMES[upTo(3) - 1] ?? 'one')
  return { items, stages, atOnce: upTo(4), asks: random() < 0.3 }
}

describe.each(stores)('random pipelines whose process is killed at random commits, on %s', (_, create) => {
  const world = useWorld(create)

  test(`no call that completed is made again, and none is a conflict, in ${CASES} of them`, async () => {
    const first = firstSeed()
    for (let seed = first; seed < first + CASES; seed++) {
      await oneCase(seed).catch((error: unknown) => {
        throw new Error(`repeat it with LEGATE_SEED=${seed}`, { cause: error })
      })
    }
  })

  async function oneCase(seed: number): Promise<void> {
    const random = seededRandom(seed)
    const pipeline = pipelineOf(random)
    const asked: string[] = []
    const lead = leadOf(pipeline, { random, asked })
    let runId: string | undefined
    for (let kills = 3; kills > 0; kills--) {
      const process = killedAt(lead, { number: 1 + Math.floor(random() * 40), isBefore: random() < 0.5 })
      if (runId === undefined) {
        const run = process.runtime.run(lead, 'Go.')
        run.result.catch(() => undefined)
        runId = run.id
      } else process.runtime.resume().catch(() => undefined)
      answerAll(process)
      await until('it is killed or over', () => process.killed || isOver(runId ?? ''), 20_000)
      await process.kill()
      if (world.store.turn(runId) === undefined) runId = undefined
      const completed = completedIn(runId)
      asked.push(...completed.map((id) => `completed ${id}`))
    }
    const last = world.start({ agents: [lead] })
    if (runId === undefined) runId = last.runtime.run(lead, 'Go.').id
    await last.runtime.resume()
    answerAll(last)
    const outcome = await (await last.runtime.attach(runId)).result
    await last.runtime.close()

    const { items, stages, asks } = pipeline
    expect(outcome).toMatchObject({ status: 'completed', children: items.length * stages.length })
    const said = items.map((item) => stages.reduce((text, name) => `${name}(${text})`, item))
    expect(outcome.text).toBe(said.join(' ') + (asks ? ' Yes.' : ''))
    expect(asked.filter((id, at) => asked.lastIndexOf(`completed ${id}`, at) !== -1)).toEqual([])
  }

  /** A process that is killed before or after its commit of this number. */
  function killedAt(lead: AnyAgent, { number, isBefore }: { number: number; isBefore: boolean }): Process {
    let commits = 0
    const store = (inner: LocalStore): LocalStore => ({
      ...inner,
      commit: (commit) => {
        if (++commits !== number) return inner.commit(commit)
        void process.kill()
        return isBefore ? new Promise(() => undefined) : after(inner.commit(commit))
      },
    })
    const process = world.start({ store, agents: [lead], mayFail: true })
    return process
  }

  function isOver(runId: string): boolean {
    return world.store.turn(runId)?.state === 'ended'
  }

  function completedIn(runId: string | undefined): string[] {
    if (runId === undefined) return []
    const links = world.store.linksOf(runId)
    return links.flatMap(({ id, outcome }) => (outcome?.status === 'completed' ? [id] : []))
  }
})

/** It never learns of the commit. */
async function after(committed: unknown): Promise<never> {
  await committed
  return new Promise(() => undefined)
}

function answerAll(process: Process): void {
  const timer = setInterval(async () => {
    if (process.killed) return clearInterval(timer)
    const questions = await process.runtime.questions().catch(() => undefined)
    if (questions === undefined) return clearInterval(timer)
    for (const { nodeId } of questions) process.runtime.answer(nodeId, { text: 'Yes.' }).catch(() => undefined)
  }, 5)
}

interface Told {
  readonly random: () => number
  /** The runs of children whose model was asked. */
  readonly asked: string[]
}

function leadOf({ items, stages, atOnce, asks }: Pipeline, { random, asked }: Told) {
  const worker = (name: string) =>
    agent({
      name,
      instructions: name,
      model: scriptedModel(async ({ messages }) => {
        await new Promise((resolve) => setTimeout(resolve, random() * 4))
        return `${name}(${messages.at(-1)?.content})`
      }),
      hooks: { onRequest: (_request: unknown, { runId }: { runId: string }) => void asked.push(runId) },
    })
  const subagents = Object.fromEntries(NAMES.map((name) => [name, worker(name)]))
  return agent({
    name: 'lead',
    effect: 'idempotent',
    subagents,
    reply: async (_input, { delegate, ask }) => {
      const said: (string | null)[] = []
      const waiting = [...items.entries()]
      const work = async () => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          let text: string | null = next[1]
          for (const name of stages) text = (await delegate(name, text ?? '')).text
          said[next[0]] = text
        }
      }
      const answer = asks ? ask('Go on?') : null
      await Promise.all(Array.from({ length: atOnce }, work))
      return [...said, ...(asks ? [await answer] : [])].join(' ')
    },
  })
}
