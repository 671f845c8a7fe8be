// Plays one story, and judges how it ended.

import { isOpen } from '../../src/core/graph/kinds.ts'
import { readTree } from '../../src/core/graph/reader.ts'
import type { Id } from '../../src/core/graph/rows.ts'
import { brokenGraph } from '../../src/testing/crash/aftermath.ts'
import { enter, host, type Theatre } from './agents.ts'
import { type Bug, SimProcess, type Stage } from './process.ts'
import { SimServer } from './server.ts'
import { type Act, type Story, storyOf, troubleMs } from './story.ts'
import { type Happening, World } from './world.ts'

export interface Played {
  /** The law that was broken; undefined where all were kept. */
  readonly broken: string | undefined
  readonly commits: number
  readonly recoveries: number
  readonly moments: number
  /** A number that another story would hardly have. */
  readonly mark: number
  readonly happened: ReadonlySet<Happening>
}

/** The longest that runs may take once everything is whole again. */
const AFTERMATH_MS = 60_000

/** Plays once in real time, so that all code is loaded that the other plays need. */
export async function rehearse(): Promise<void> {
  const acts: Act[] = [{ at: 0, type: 'run', on: 0, deeds: ['pay', 'look', 'sub:pay', 'ask'], wallMs: null }]
  const whole = { seed: 1, processes: [{ skew: 0, delayMs: 1 }], loss: 0, twice: 0, failing: 0, fewRows: false }
  await new Play({ ...whole, acts: [...acts, { at: 5, type: 'follow', on: 0, run: 0 }] }, undefined, true).run()
}

export async function simulate(
  seed: number,
  options: { bug?: Bug | undefined; without?: readonly number[] } = {},
): Promise<Played> {
  const play = new Play(storyOf(seed, options.without), options.bug)
  await play.run()
  const { world, server } = play.stage
  const { broken, moments, happened } = world
  const { commits, recoveries } = server
  return { broken, commits, recoveries, moments, mark: world.mark(), happened }
}

/** Leaves out of a story what is not needed to break the law. Gives the numbers of what was left out. */
export async function minimise(seed: number, bug?: Bug): Promise<readonly number[]> {
  let without: readonly number[] = []
  const { acts } = storyOf(seed)
  for (let at = 0; at < acts.length; at++) {
    const fewer = [...without, at]
    if ((await simulate(seed, { bug, without: fewer })).broken !== undefined) without = fewer
  }
  return without
}

interface StartedRun {
  readonly id: Id
  readonly conversationId: Id
  readonly process: SimProcess
  isRefused: boolean
}

interface Follower {
  readonly process: SimProcess
  readonly seqs: number[]
  isOver: boolean
}

class Play {
  readonly stage: Stage
  private readonly story: Story
  private readonly bug: Bug | undefined
  private readonly theatre: Theatre
  private readonly slots: SimProcess[] = []
  /** The ids of runs, by their place in the story. */
  private readonly runs: StartedRun[] = []
  private readonly followers: Follower[] = []
  private acted = 0

  constructor(story: Story, bug: Bug | undefined, isLoading = false) {
    const world = new World(story.seed, isLoading)
    this.story = story
    this.bug = bug
    this.stage = { world, server: new SimServer(world), processes: [] }
    const epochOf = (nodeId: Id) => this.stage.server.store.node(nodeId)?.epoch
    this.theatre = { world, current: null, effects: new Map(), epochOf, failing: story.failing }
    world.entered = (owner) => {
      if (owner instanceof SimProcess) this.theatre.current = owner
    }
    enter(this.theatre)
    for (const slot of story.processes.keys()) this.begin(slot)
  }

  async run(): Promise<void> {
    const { world } = this.stage
    for (const act of this.story.acts) world.at(world.now + act.at, null, () => this.act(act))
    await world.pass(troubleMs(this.story), () => this.isOver())
    if (!this.isOver()) this.heal()
    await world.pass(AFTERMATH_MS, () => this.isOver())
    if (world.broken === undefined) this.judge()
    for (const process of this.stage.processes) process.isDead = true
  }

  /** Nothing is left to happen. */
  private isOver(): boolean {
    if (this.acted < this.story.acts.length || this.runs.some((run) => this.isStarting(run))) return false
    return this.stage.server.store.openTurns(1).length === 0 && this.followers.every(isSettled)
  }

  /** A run counts from when its rows are there; a process that dies before that takes it with it. */
  private isStarting({ process, conversationId, isRefused }: StartedRun): boolean {
    return !isRefused && !process.isDead && !this.stage.server.trees.has(conversationId)
  }

  private begin(slot: number): void {
    const { skew = 0, delayMs = 1 } = this.story.processes[slot] ?? {}
    const { loss, twice, fewRows } = this.story
    const name = `p${slot}.${this.stage.processes.length}`
    const process = new SimProcess(this.stage, {
      name,
      skew,
      delayMs,
      loss,
      twice,
      fewRows,
      bug: this.bug,
    })
    this.stage.processes.push(process)
    this.slots[slot] = process
    this.on(process, (runtime) => resumed(runtime, process))
  }

  /** Lets a process do something; what becomes of it is seen in the rows. */
  private on(process: SimProcess, act: (runtime: SimProcess['runtime']) => Promise<unknown>): void {
    this.theatre.current = process
    act(process.runtime).catch(() => undefined)
  }

  private act(act: Act): void {
    this.acted++
    const { world } = this.stage
    const process = this.slots[act.on]
    if (process === undefined || process.isDead) return
    this.note(act, process)
    if (act.type === 'die') return this.die(process, act.on, act.backAfter)
    if (act.type === 'sleep') process.asleepUntil = Math.max(process.asleepUntil, world.now + act.ms)
    if (act.type === 'cut') this.cut(process, act.ms, act.ways)
    if (process.asleepUntil > world.now) return
    if (act.type === 'run') this.start(process, act)
    if (act.type === 'approve') this.approve(process, act.allow)
    const run = act.type === 'cancel' || act.type === 'follow' ? this.runs[act.run] : undefined
    if (run === undefined) return
    if (act.type === 'cancel') this.on(process, (runtime) => runtime.cancel(run.id))
    if (act.type === 'follow') this.follow(process, run.id)
  }

  /** Trouble counts where a run is open. */
  private note({ type }: Act, process: SimProcess): void {
    const { world, server } = this.stage
    if (server.store.openTurns(1).length === 0) return
    if (type === 'cut' || type === 'sleep') world.happened.add(type)
    if (type === 'die') world.happened.add('crash')
    if (type === 'die' && server.isAtWork(process)) world.happened.add('crash at work')
  }

  private die(process: SimProcess, slot: number, backAfter: number): void {
    const { world } = this.stage
    process.isDead = true
    world.at(world.now + backAfter, null, () => {
      if (this.slots[slot]?.isDead === true) this.begin(slot)
    })
  }

  private cut(process: SimProcess, ms: number, ways: 'there' | 'back' | 'both'): void {
    const until = this.stage.world.now + ms
    process.cut = { there: ways === 'back' ? 0 : until, back: ways === 'there' ? 0 : until }
  }

  private start(process: SimProcess, { deeds, wallMs }: Extract<Act, { readonly type: 'run' }>): void {
    this.theatre.current = process
    const options = wallMs === null ? {} : { budget: { wallMs } }
    const { id, conversationId, result } = process.runtime.run(host, deeds.join(' '), options)
    const started: StartedRun = { id, conversationId, process, isRefused: false }
    result.catch(() => {
      started.isRefused = true
    })
    this.runs.push(started)
  }

  private approve(process: SimProcess, allow: boolean): void {
    this.on(process, async (runtime) => {
      for (const { nodeId } of await runtime.approvals()) await runtime.answer(nodeId, { allow })
    })
  }

  /** Reads the events of a run in some process, as a user would. */
  private follow(process: SimProcess, runId: Id): void {
    const follower: Follower = { process, seqs: [], isOver: false }
    this.followers.push(follower)
    this.on(process, async (runtime) => {
      try {
        const run = await runtime.attach(runId)
        for await (const event of run.events({ live: false })) {
          follower.seqs.push(event.seq)
          this.stage.world.happened.add('reader')
        }
      } finally {
        // One that was told of an error may read again: it does not wait.
        follower.isOver = true
      }
    })
  }

  /** Ends all trouble: whoever lives is reachable, a fresh process looks after the rest, and people answer. */
  private heal(): void {
    const { world, processes } = this.stage
    for (const process of processes) {
      process.cut = { there: 0, back: 0 }
      process.asleepUntil = Math.min(process.asleepUntil, world.now)
      process.isBadlyConnected = false
    }
    for (const [slot, process] of this.slots.entries()) if (process.isDead) this.begin(slot)
    for (const process of processes) process.isBadlyConnected = false
    const [first] = this.slots
    const answerAll = (after: number): void => {
      world.at(world.now + after, null, () => {
        if (first !== undefined) this.approve(first, true)
        answerAll(after * 2)
      })
    }
    answerAll(200)
  }

  private judge(): void {
    const { world, server } = this.stage
    const { store } = server
    const [open] = store.openTurns(1)
    if (open !== undefined) return world.fail(`the run ${open.id} of ${open.conversationId} was left open`)
    if (store.claimants().length > 0) return world.fail('a claim was left')
    for (const [rootId] of server.trees) this.judgeTree(rootId)
    for (const { seqs } of this.followers) this.judgeReader(seqs)
    const late = this.followers.find((follower) => !isSettled(follower))
    if (late !== undefined) world.fail('a reader did not come to the end of its run')
  }

  private judgeTree(rootId: Id): void {
    const { world, server } = this.stage
    const { store } = server
    const events = store.events(rootId, 0, 100_000)
    if (events.some(({ seq }, at) => seq !== at + 1)) world.fail('the events of a tree have a gap')
    const [wrong] = brokenGraph(readTree(store, rootId))
    if (wrong !== undefined) world.fail(wrong)
    for (const { id } of store.conversations({ rootId, limit: 1_000 })) {
      for (const turn of store.turnsOf(id, { limit: 100 })) {
        const ends = events.filter(({ body, runId }) => body.type === 'run-end' && runId === turn.id)
        if (turn.outcome === null || ends.length !== 1) world.fail(`a run ended ${ends.length} times`)
        for (const node of store.nodesOf(turn.id)) this.judgeNode(node)
        const tasks = store.linksOf(turn.id).map(({ taskId, attempt }) => `${taskId} ${attempt}`)
        if (new Set(tasks).size !== tasks.length) world.fail('a call started two children')
      }
    }
  }

  private judgeNode(node: ReturnType<SimServer['store']['nodesOf']>[number]): void {
    const { world } = this.stage
    if (isOpen(node.state)) world.fail(`a ${node.kind} was left ${node.state}`)
    if (node.input.call?.name !== 'pay') return
    const times = this.theatre.effects.get(node.id) ?? 0
    if (times > 1) world.fail(`an effect happened ${times} times`)
    if (times === 0 && node.state === 'finished') world.fail('a call finished whose effect did not happen')
  }

  private judgeReader(seqs: readonly number[]): void {
    const isOrdered = seqs.every((seq, at) => at === 0 || seq > (seqs[at - 1] ?? 0))
    if (!isOrdered) this.stage.world.fail('a reader saw events twice or out of order')
  }
}

/** Starts a process, as whoever looks after it would: again, where the server did not answer. */
async function resumed(runtime: SimProcess['runtime'], process: SimProcess): Promise<void> {
  for (let isUp = false; !isUp; ) {
    isUp = await runtime.resume().then(
      () => true,
      () => false,
    )
    if (!isUp) await process.sleep(500)
  }
}

function isSettled({ process, isOver }: Follower): boolean {
  return isOver || process.isDead
}
