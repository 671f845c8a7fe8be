import type { ProcessReport } from '../graph/commit.ts'
import type { AgentRef } from '../graph/rows.ts'
import { SourceBoard } from './source-board.ts'

/** How a process treats a run whose agent was defined differently when it began. */
export const ON_CHANGED = ['continue', 'wait'] as const
export type OnChanged = (typeof ON_CHANGED)[number]

/** The definitions of agents that a process has code for. */
export interface KnownDefinitions {
  /** Grows with each that becomes known. */
  readonly version: number
  hasVersion(agent: AgentRef): boolean
  hashes(): readonly string[]
  /** The hash of the newest definition of each name. */
  newest(): Readonly<Record<string, string>>
}

/** Which of the agents that it has code for a process runs now, and what it tells the others about that. */
export class Abilities {
  readonly sources: SourceBoard
  private readonly known: KnownDefinitions
  private readonly waits: boolean
  private told: ProcessReport = {}
  /** The version of `known` that `told` was made of. */
  private toldOf = -1

  constructor(known: KnownDefinitions, onChanged: OnChanged, now: () => number) {
    this.known = known
    this.waits = onChanged === 'wait'
    this.sources = new SourceBoard(now)
  }

  readonly mayRun = (agent: AgentRef): boolean => {
    if (this.sources.hasLeft && this.sources.isLeft(agent)) return false
    return !this.waits || agent.inline !== undefined || this.known.hasVersion(agent)
  }

  /** It stays one object while nothing changes. */
  readonly tell = (): ProcessReport => {
    const sources = this.sources.list()
    if (this.told.sources === sources && this.toldOf === this.known.version) return this.told
    this.toldOf = this.known.version
    const told = { sources, definitions: this.known.newest(), ...(this.waits && { versions: this.known.hashes() }) }
    // An agent object that says nothing new is no news.
    if (this.told.sources !== sources || JSON.stringify(told) !== JSON.stringify(this.told)) this.told = told
    return this.told
  }
}
