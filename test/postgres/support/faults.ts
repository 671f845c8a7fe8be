import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import path from 'node:path'
import { eachTree, type TreeRows } from '../../../src/graph/reader.ts'
import { postgresStore } from '../../../src/store/postgres/index.ts'
import { brokenGraph } from '../../../src/testing/crash/aftermath.ts'

const program = path.resolve(import.meta.dirname, '../programs/worker.mjs')

export interface FaultCase {
  readonly url: string
  readonly folder: string
  readonly jobs: number
  readonly leaseMs: number
}

/** A process that works on the jobs of a case. */
export class Worker {
  readonly ended: Promise<number | string>
  private readonly child: ChildProcess
  private said = ''

  constructor({ folder, jobs, leaseMs, url }: FaultCase) {
    const log = openSync(path.join(folder, 'acknowledged'), 'a')
    const orders = JSON.stringify({ url, jobs, leaseMs, effects: path.join(folder, 'effects') })
    this.child = spawn(process.execPath, [program, orders], { stdio: ['ignore', 'pipe', 'pipe', log] })
    closeSync(log)
    const hear = (data: Buffer) => {
      this.said += String(data)
    }
    this.child.stdout?.on('data', hear)
    this.child.stderr?.on('data', hear)
    this.ended = once(this.child, 'exit').then(([code, signal]) => code ?? signal)
  }

  get output(): string {
    return this.said
  }

  kill(): void {
    this.child.kill('SIGKILL')
  }
}

/** A way to the database that can be cut: nothing passes and no end is told, as when a cable is pulled. */
export class Cable {
  readonly port: number
  private readonly server: ReturnType<typeof createServer>
  private readonly pairs = new Set<readonly [Socket, Socket]>()
  private isCut = false
  private isDeaf = false

  private constructor(server: ReturnType<typeof createServer>, to: number) {
    this.server = server
    const address = server.address()
    this.port = typeof address === 'object' && address !== null ? address.port : 0
    server.on('connection', (near) => this.join(near, connect(to, '127.0.0.1')))
  }

  static async open(to: number): Promise<Cable> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Cable(server, to)
  }

  cut(): void {
    this.isCut = true
  }

  /** What is sent arrives; no answer does. */
  loseAnswers(): void {
    this.isDeaf = true
  }

  /** Connections that were cut end now: both sides had forgotten each other. */
  heal(): void {
    this.isCut = false
    this.isDeaf = false
    for (const [near, far] of this.pairs) for (const socket of [near, far]) socket.destroy()
  }

  async close(): Promise<void> {
    this.heal()
    this.server.close()
    await once(this.server, 'close')
  }

  private join(near: Socket, far: Socket): void {
    const pair = [near, far] as const
    this.pairs.add(pair)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => undefined)
      from.on('data', (data) => {
        if (!this.isCut && !(this.isDeaf && from === far)) to.write(data)
      })
      from.on('close', () => {
        this.pairs.delete(pair)
        to.destroy()
      })
    }
  }
}

interface Acknowledged {
  readonly id: string
  readonly rootId: string
  readonly seqs: readonly number[]
}

export interface Found {
  readonly trees: number
  readonly acknowledged: number
  readonly events: number
  readonly uncertain: number
  readonly wrong: readonly string[]
}

/** Compares what the workers were told with what is there: nothing lost, nothing doubled, nothing left open. */
export async function checkCase({ url, folder, jobs }: FaultCase): Promise<Found> {
  const lines = linesIn<Acknowledged>(folder, 'acknowledged', (line) => JSON.parse(line) as Acknowledged)
  const store = postgresStore({ url, readOnly: true })
  try {
    const trees: TreeRows[] = []
    for await (const tree of eachTree(store)) trees.push(tree)
    const verified = await store.archive?.verify()
    const wrong = [
      ...(verified?.findings ?? []).map(({ message }) => message),
      ...trees.flatMap(brokenGraph),
      ...trees.flatMap(wrongRun),
      ...lost(lines, trees),
      ...doubledEffects(folder, trees),
      ...(trees.length === jobs ? [] : [`${trees.length} trees for ${jobs} jobs`]),
    ]
    const nodes = trees.flatMap((tree) => [...tree.nodes.values()])
    return {
      trees: trees.length,
      acknowledged: lines.length,
      events: trees.reduce((sum, { events }) => sum + events.length, 0),
      uncertain: nodes.filter(({ state }) => state === 'uncertain').length,
      wrong,
    }
  } finally {
    await store.close()
  }
}

function wrongRun(tree: TreeRows): string[] {
  const wrong = [...tree.turns.values()].flatMap(({ id, state }) => (state === 'ended' ? [] : [`${id} is ${state}`]))
  if (tree.links.size !== 1) wrong.push(`${tree.rootId} has ${tree.links.size} delegations, not 1`)
  tree.events.forEach(({ seq }, at) => {
    if (seq !== at + 1) wrong.push(`event ${seq} of ${tree.rootId} is at place ${at + 1}`)
  })
  return wrong
}

/** Acknowledged commits are there once: no id twice, and their events where they were said to be. */
function lost(lines: readonly Acknowledged[], trees: readonly TreeRows[]): string[] {
  const known = new Map(trees.map((tree) => [tree.rootId, tree.events.length]))
  const ids = new Set<string>()
  const places = new Set<string>()
  return lines.flatMap(({ id, rootId, seqs }) => {
    const wrong: string[] = []
    if (ids.has(id)) wrong.push(`the commit ${id} was acknowledged twice`)
    ids.add(id)
    for (const seq of seqs) {
      const place = `${rootId} ${seq}`
      if (seq > (known.get(rootId) ?? 0)) wrong.push(`the event ${place} was acknowledged and is not there`)
      if (places.has(place)) wrong.push(`the event ${place} was acknowledged to two commits`)
      places.add(place)
    }
    return wrong
  })
}

/** An effect happens once, unless its call is marked as uncertain. */
function doubledEffects(folder: string, trees: readonly TreeRows[]): string[] {
  const counts = new Map<string, number>()
  for (const key of linesIn(folder, 'effects', String)) counts.set(key, (counts.get(key) ?? 0) + 1)
  const calls = trees.flatMap((tree) => [...tree.nodes.values()].filter(({ input }) => input.call?.name === 'pay'))
  const done = calls.filter(({ state }) => state === 'finished').length
  const doubled = [...counts].flatMap(([key, count]) =>
    count > 1 ? [`the effect ${key} happened ${count} times`] : [],
  )
  return done <= counts.size
    ? doubled
    : [...doubled, `${done} calls have finished, and ${counts.size} effects happened`]
}

function linesIn<T>(folder: string, name: string, read: (line: string) => T): T[] {
  const file = path.join(folder, name)
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.endsWith('}') || (line !== '' && name !== 'acknowledged'))
    .map(read)
}
