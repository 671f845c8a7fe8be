import { messageOf } from '../../base/error.ts'
import type { Json } from '../../base/json.ts'
import type { Later } from '../../base/maybe.ts'
import type { Commit } from '../../graph/commit.ts'
import { type EventRow, type RunEvent, toEvent } from '../../graph/event.ts'
import { withWords } from '../../graph/outcome.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Id, Purpose, Turn } from '../../graph/rows.ts'
import type { Ledger } from '../../store/ledger.ts'
import { look, mayHaveEnded, treeLoaded } from '../../store/look.ts'
import type { StoreChange } from '../../store/store.ts'
import type { Logger } from '../../tool/tool.ts'
import type { ExtensionCore } from '../definition/extension.ts'
import { type EventOf, type HookContext, type HookName, useEach } from '../definition/hooks.ts'
import type { HookSet } from './hook-set.ts'

/** The place in a run where a hook is called. */
export interface HookPlace {
  readonly tree: TreeReader
  readonly runId: Id
  readonly nodeId: Id | null
  readonly purpose: Purpose | null
  readonly work: { readonly signal: AbortSignal } | null
}

interface OpenRun {
  readonly rootId: Id
  readonly agent: string
  readonly hooks: HookSet
  readonly states: Map<ExtensionCore, unknown>
  readonly extra: { [key: string]: Json }
}

/**
 * The state of extensions for the runs of this process, and the hooks that only watch: events, delegations, ends.
 * Another process that continues a run makes its own state.
 */
export class ExtensionRuns {
  private readonly open: Map<Id, OpenRun> = new Map()
  private readonly pending: Set<Promise<void>> = new Set()
  private readonly ledger: Ledger
  private readonly logger: Logger

  constructor(ledger: Ledger, logger: Logger) {
    this.ledger = ledger
    this.logger = logger
  }

  /** Does this process have to do with any run that has hooks? */
  get hasRuns(): boolean {
    return this.open.size > 0
  }

  /** Registers a run with this process, before a hook of it is called. */
  enter({ id, rootId, state }: EnteringRun, agent: string, hooks: HookSet | null): void {
    if (hooks === null || this.open.has(id)) return
    // A child may outlive its host, whose hooks have already seen its end.
    if (state === 'ended') return
    this.open.set(id, { rootId, agent, hooks, states: new Map(), extra: {} })
  }

  /** Forgets a run that was not recorded. */
  leave(runId: Id): void {
    if (this.open.size > 0) this.open.delete(runId)
  }

  /** The values that extensions put beside the answer; undefined for none. */
  extraOf(runId: Id): { readonly [key: string]: Json } | undefined {
    const extra = this.open.get(runId)?.extra
    return extra === undefined || Object.keys(extra).length === 0 ? undefined : extra
  }

  /** Puts a value beside the answer of a run. */
  keep(runId: Id, key: string, value: Json): void {
    const extra = this.open.get(runId)?.extra
    if (extra !== undefined) extra[key] = value
  }

  contextOf(extension: ExtensionCore, place: HookPlace): HookContext {
    const { tree, runId, nodeId, purpose, work } = place
    const conversationId = tree.turn(runId)?.conversationId ?? ''
    const conversation = tree.conversation(conversationId)
    const path = conversation?.path ?? []
    const open = this.open.get(runId)
    const agent = open?.agent ?? path.at(-1) ?? ''
    return {
      state: this.stateOf(extension, { agent, runId, conversationId, path }),
      extra: open?.extra ?? {},
      agent,
      runId,
      conversationId,
      nodeId,
      purpose,
      path,
      owner: conversation?.owner ?? null,
      logger: this.logger,
      get signal() {
        return work?.signal ?? new AbortController().signal
      },
    }
  }

  /** Reports a hook that threw: in the log of the run while it is open, else only to the logger. */
  async report(
    extension: ExtensionCore,
    failure: { readonly hook: string; readonly error: unknown },
    place: Pick<HookPlace, 'tree' | 'runId' | 'nodeId'>,
  ): Promise<void> {
    const message = messageOf(failure.error)
    const { state, rootId } = place.tree.turn(place.runId) ?? { state: 'ended' }
    // After the last event only the logger can be told.
    const level = state === 'ended' ? 'error' : 'warn'
    this.logger[level](`The hook ${failure.hook} failed: ${message}`, {
      extension: extension.name,
      error: failure.error,
    })
    if (rootId === undefined || state === 'ended') return
    await this.ledger.commit({
      kind: 'note',
      rootId,
      plan: (draft) => {
        const turn = draft.findTurn(place.runId)
        if (turn === undefined || turn.state === 'ended') return
        draft.event(turn, place.nodeId, {
          type: 'extension-error',
          extension: extension.name,
          hook: failure.hook,
          message,
        })
      },
    })
  }

  committed(commit: Commit): void {
    for (const row of commit.events) this.callWatchers(row)
    for (const turn of commit.turns) if (turn.state === 'ended') this.end(turn)
  }

  /** Called when another process has written: runs that it ended have ended here too. */
  async changed(change?: StoreChange): Promise<void> {
    const { store } = this.ledger
    for (const runId of await mayHaveEnded(store, [...this.open.keys()], change)) {
      const rootId = this.open.get(runId)?.rootId
      if (rootId === undefined) continue
      const turn = await look(store, rootId, (tree) => tree.turn(runId))
      if (turn?.state === 'ended') this.end(turn)
      else if (turn === undefined && (await store.archive?.tombstone(runId)) !== undefined) this.leave(runId)
    }
  }

  /** Resolves when no hook is running. */
  async settled(): Promise<void> {
    while (this.pending.size > 0) await Promise.all(this.pending)
  }

  private stateOf(
    extension: ExtensionCore,
    run: { agent: string; runId: Id; conversationId: Id; path: readonly string[] },
  ): unknown {
    const states = this.open.get(run.runId)?.states
    if (states?.has(extension) === true) return states.get(extension)
    const state: unknown = extension.state?.(run)
    states?.set(extension, state)
    return state
  }

  private callWatchers(row: EventRow): void {
    const run = this.open.get(row.runId)
    const hook = SEEING.get(row.body.type)
    if (run === undefined || (hook === undefined && !run.hooks.has('onEvent'))) return
    this.start(async () => {
      const tree = await this.placeOf(row.runId, run.rootId)
      const place = { tree, runId: row.runId, nodeId: row.nodeId, purpose: null, work: null }
      const event = toEvent(row)
      if (hook !== undefined) {
        await this.seen(run.hooks, { hook, place }, (extension, context) =>
          extension.hooks?.[hook]?.(event as EventOf<'delegation-start'> & EventOf<'delegation-end'>, context),
        )
      }
      await this.seen(
        run.hooks,
        { hook: 'onEvent', place, isQuiet: event.type === 'extension-error' },
        (extension, context) => Promise.all(eventHooks(extension, event).map((own) => own(event, context))),
      )
    })
  }

  /** The rows of a tree, with those that a hook of this run is told of. */
  private placeOf(runId: Id, rootId: Id, nodeId?: Id): Later<TreeReader> {
    return treeLoaded(this.ledger.store, rootId, (tree) => {
      tree.conversation(tree.turn(runId)?.conversationId ?? '')
      if (nodeId !== undefined) tree.node(nodeId)
    })
  }

  /** Calls a watching hook of each extension; its errors do not affect the run. */
  private async seen(
    hooks: HookSet,
    {
      hook,
      place,
      isQuiet = false,
    }: {
      readonly hook: HookName
      readonly place: HookPlace
      /** True: its errors stay out of the log of the run. */
      readonly isQuiet?: boolean
    },
    call: (extension: ExtensionCore, context: HookContext) => unknown,
  ): Promise<void> {
    for (const extension of hooks.of(hook)) {
      try {
        await useEach(call(extension, this.contextOf(extension, place)) as never, () => undefined)
      } catch (error) {
        // Reporting an error about an error would never end.
        if (isQuiet)
          this.logger.error(`The hook ${hook} failed: ${messageOf(error)}`, { extension: extension.name, error })
        else await this.report(extension, { hook, error }, place)
      }
    }
  }

  private end(turn: Turn): void {
    const run = this.open.get(turn.id)
    if (run === undefined) return
    if (!run.hooks.has('onFinally')) {
      // Forgets the run only after the other events of the same commit.
      this.start(async () => this.leave(turn.id))
      return
    }
    this.start(async () => {
      if (this.ledger.store.shared && !(await this.isFirst(turn))) return this.leave(turn.id)
      const { outcome } = turn
      const answerId = outcome?.answerNodeId ?? undefined
      const tree = await this.placeOf(turn.id, turn.rootId, answerId)
      const node = answerId === undefined ? undefined : tree.node(answerId)
      const place = { tree, runId: turn.id, nodeId: null, purpose: null, work: null }
      if (outcome !== null) {
        const said = withWords(outcome, node?.output ?? {})
        await this.seen(run.hooks, { hook: 'onFinally', place }, (extension, context) =>
          extension.hooks?.onFinally?.(said, context),
        )
      }
      this.leave(turn.id)
    })
  }

  /** Where processes share a store, the first one that writes this calls the hooks. */
  private isFirst({ entryNodeId, rootId }: Turn): boolean | Promise<boolean> {
    return this.ledger.commit({
      kind: 'note',
      rootId,
      plan: (draft) => {
        const node = draft.findNode(entryNodeId)
        if (node === undefined || node.metadata['finally'] === true) return false
        draft.changeNode(node, { metadata: { ...node.metadata, finally: true } })
        return true
      },
    })
  }

  /** Runs after the commit it reports, and before the waiters of the run are notified. */
  private start(code: () => Promise<void>): void {
    const running = Promise.resolve()
      .then(code)
      .catch((error: unknown) => this.logger.error(messageOf(error), { error }))
      .finally(() => this.pending.delete(running))
    this.pending.add(running)
  }
}

/** A run that this process begins to work for. One that is not recorded yet has no state. */
export type EnteringRun = Pick<Turn, 'id' | 'rootId'> & Partial<Pick<Turn, 'state'>>

const SEEING: ReadonlyMap<string, 'onDelegationStart' | 'onDelegationEnd'> = new Map([
  ['delegation-start', 'onDelegationStart'],
  ['delegation-end', 'onDelegationEnd'],
])

type EventHook = (event: RunEvent, context: HookContext) => unknown

/** An extension's hooks for an event: those under its type, and those for all. */
export function eventHooks({ hooks }: ExtensionCore, { type }: Pick<RunEvent, 'type'>): readonly EventHook[] {
  const { onEvent } = hooks ?? {}
  return [onEvent?.[type], onEvent?.['*']].filter((hook) => hook !== undefined) as unknown as readonly EventHook[]
}
