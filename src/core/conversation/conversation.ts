import type { AuditOptions, AuditReport } from '../audit/audit.ts'
import { InputError, NotFoundError } from '../base/error.ts'
import type { Json } from '../base/json.ts'
import { anything, int, type NoOptions, readOptions, text } from '../base/options.ts'
import { stackCeilings } from '../grant/ceiling.ts'
import { type Profiles, profileLayer } from '../grant/profile.ts'
import type { Content } from '../graph/content.ts'
import type { TranscriptLine } from '../graph/context.ts'
import type { Draft } from '../graph/draft.ts'
import type { DurableEvent } from '../graph/event.ts'
import type { TreeReader } from '../graph/reader.ts'
import type { Conversation, Id, Node } from '../graph/rows.ts'
import { closeSession, type OpenSession, openSessions } from '../rules/delegation/session.ts'
import { type Mutation, planMutate } from '../rules/history/mutate.ts'
import { type ObservedMessage, planObserve } from '../rules/turn/observe.ts'
import { type ConversationSettings, planSettings } from '../rules/turn/say.ts'
import type { Ledger } from '../store/ledger.ts'
import { look, treeLoaded } from '../store/look.ts'
import { notFound } from '../store/not-found.ts'
import type { Store } from '../store/store.ts'
import { type Groups, groupStates, switchGroups } from '../tool/groups.ts'
import type {
  ConversationPages,
  EventPageQuery,
  MessagePage,
  MessagePageQuery,
  TranscriptPage,
  TurnPageQuery,
} from './conversation-pages.ts'
import { ConversationHistory, type HistoryHome, type HistoryParts, readObserved } from './history-handle.ts'
import { type UsageQuery, type UsageStats, usageStats } from './usage-stats.ts'

const SETTINGS = { policyProfile: text, contextTurns: int(1, 1_000) }

/** The facts about a conversation's agent that its process supplies. */
export interface ConversationHome extends HistoryHome {
  readonly profiles: Profiles
  /** The groups of its toolkit; undefined where this process has no code for the agent. */
  groupsOf(tree: TreeReader, row: Conversation): Groups | undefined
}

export interface MutateOptions {
  /** The running turn to put nodes into. Default: a new turn. */
  readonly runId?: Id
}

/** A value, and not the promise of one. */
type Settled<T> = T extends PromiseLike<unknown> ? never : T

/** A stored conversation or one of its lanes: read it, change it, add nodes to it by hand. */
export class ConversationHandle {
  readonly id: Id
  /** Changes what was said and done: retry, edit, fork, merge, sum up, hide. */
  readonly history: ConversationHistory
  /** The conversation at the root of its tree. */
  readonly rootId: Id
  private readonly ledger: Ledger
  private readonly home: ConversationHome
  /** The layers of whoever holds this handle, the runtime's among them. */
  private readonly caller: readonly Json[]

  constructor(
    ledger: Ledger,
    { id, rootId }: Pick<Conversation, 'id' | 'rootId'>,
    parts: Pick<HistoryParts, 'attach' | 'caller' | 'mayBegin'> & { readonly home: ConversationHome },
  ) {
    const { home, caller = [] } = parts
    this.ledger = ledger
    this.id = id
    this.rootId = rootId
    this.home = home
    this.caller = stackCeilings(home.ceiling, caller)
    this.history = new ConversationHistory({ id, rootId, ledger, ...parts })
  }

  get store(): Store {
    return this.ledger.store
  }

  /** Its row as it is now; undefined when it was deleted. */
  async row(): Promise<Conversation | undefined> {
    return look(this.store, this.rootId, (tree) => tree.conversation(this.id))
  }

  /** Reads a page: of a large tree, only the turns that it needs are loaded. */
  private async page<T>(read: (pages: ConversationPages) => T): Promise<T> {
    const { ConversationPages: Pages } = await import('./conversation-pages.ts')
    return look(this.store, this.rootId, (tree) => read(new Pages(tree, this.id, this.ledger.kinds)))
  }

  /** Reads its row and what belongs to it. Throws where the conversation was deleted. */
  private async known<T>(read: (tree: TreeReader, row: Conversation) => T): Promise<T> {
    const found = await look(this.store, this.rootId, (tree) => {
      const row = tree.conversation(this.id)
      return row === undefined ? undefined : { value: read(tree, row) }
    })
    if (found === undefined) throw await notFound(this.store, 'conversation', this.id)
    return found.value
  }

  /** Changes the most that its agent may use, and how many rounds its model sees, from its next node on. */
  async configure(settings: ConversationSettings): Promise<void> {
    const { policyProfile, contextTurns } = readOptions('configure()', settings, SETTINGS)
    const row = await this.known((_, own) => own)
    if (policyProfile !== undefined) profileLayer(policyProfile, this.home.profiles)
    const plan = (draft: Draft) => planSettings(draft, this.id, { policyProfile, contextTurns })
    await this.ledger.commit({ kind: 'note', rootId: row.rootId, plan })
  }

  /** The visible lines of the latest rounds, oldest first. */
  async recentTurns(query: Pick<TurnPageQuery, 'limitTurns'> = {}): Promise<readonly TranscriptLine[]> {
    const { limitTurns } = readOptions('recentTurns()', query, { limitTurns: anything })
    return this.page((pages) => pages.transcript(limitTurns === undefined ? {} : { limitTurns }).transcript)
  }

  /** The visible lines, page by page: the latest, those before a turn, or those after it. */
  async transcript(query: TurnPageQuery = {}): Promise<readonly TranscriptLine[]> {
    return this.page((pages) => pages.transcript(query).transcript)
  }

  /** Like `transcript`, with the turns of the page and the cursors for the pages on both sides. */
  async transcriptPage(query: TurnPageQuery = {}): Promise<TranscriptPage> {
    return this.page((pages) => pages.transcript(query))
  }

  /** The lines that led to a node: its causes among the latest turns, and nothing else. */
  async transcriptFor(
    nodeId: Id,
    options: { readonly limitTurns?: number; readonly limit?: number } = {},
  ): Promise<TranscriptLine[]> {
    return this.page((pages) => pages.transcriptFor(nodeId, options))
  }

  /** The nodes that a node's model would see, and the node itself. */
  async contextFor(nodeId: Id, options: { readonly limitTurns?: number } = {}): Promise<Node[]> {
    return this.page((pages) => pages.context(nodeId, options))
  }

  /** The visible messages, one by one. A page may be short where many of the scanned messages are hidden. */
  async messagePage(query: MessagePageQuery = {}): Promise<TranscriptLine[]> {
    return [...(await this.messagesPage(query)).messages]
  }

  /** Like `messagePage`, with the cursor for the next page. */
  async messagesPage(query: MessagePageQuery = {}): Promise<MessagePage> {
    return this.page((pages) => pages.messages(query))
  }

  /** Recorded events of this conversation, or of one node. */
  async eventPage(query: EventPageQuery = {}): Promise<DurableEvent[]> {
    const tree = await treeLoaded(this.store, this.rootId, (rows) => rows.conversation(this.id))
    const { ConversationPages: Pages } = await import('./conversation-pages.ts')
    return new Pages(tree, this.id, this.ledger.kinds).events(this.store, query)
  }

  /** Checks its rows and delegations; with `repair`, returns the problems that remain. See `runtime.audit`. */
  async audit(options: Omit<AuditOptions, 'rootId'> = {}): Promise<AuditReport> {
    const row = await this.known((_, own) => own)
    const { auditConversation } = await import('../audit/audit.ts')
    return auditConversation(this.ledger, row, options)
  }

  /** The usage of this lane's model calls: in all, by model and by day. */
  async usageStats(query: UsageQuery = {}): Promise<UsageStats> {
    return usageStats(this.store, this, query)
  }

  /** The groups of its agent's toolkit, and whether each is on here. */
  async groups(options: NoOptions = {}): Promise<{ readonly [group: string]: boolean }> {
    readOptions('groups()', options, {})
    return this.known((tree, row) => groupStates(this.knownGroups(tree, row), row.groups, NO_CHANGES))
  }

  /** Switches groups of tools on: its next model call is offered them, as far as grants allow. */
  activate(...names: readonly string[]): Promise<{ readonly [group: string]: boolean }> {
    return this.switch(names, true)
  }

  deactivate(...names: readonly string[]): Promise<{ readonly [group: string]: boolean }> {
    return this.switch(names, false)
  }

  /**
   * Adds a message without starting a turn: nobody answers it, and the model of the next turn sees it. Returns the id
   * of its node. While a turn runs, the message comes after it.
   */
  async observe(message: Content | ObservedMessage): Promise<Id> {
    const { limits } = await this.known((tree, row) => this.home.boundsOf(tree, row, this.caller))
    const observed = readObserved(message)
    return this.ledger.commit({
      kind: 'mutate',
      rootId: this.rootId,
      plan: (draft) => planObserve(draft, this.id, { message: observed, limits, ceiling: this.caller }),
    })
  }

  /** The open sessions with subagents that this conversation has started, the newest last. */
  async sessions(options: NoOptions = {}): Promise<readonly OpenSession[]> {
    readOptions('sessions()', options, {})
    return look(this.store, this.rootId, (tree) => {
      const row = tree.conversation(this.id)
      return row === undefined ? [] : openSessions(tree, row, this.ledger.clock.now())
    })
  }

  /** Closes one of them: you can still read it, but add no turn to it. */
  async closeSession(id: Id): Promise<void> {
    const session = await look(this.store, this.rootId, (tree) => tree.conversation(id))
    if (session === undefined || session.parentConversationId !== this.id) {
      throw new NotFoundError('not_found', `There is no session ${id} of the conversation ${this.id}.`)
    }
    const plan = (draft: Draft) => closeSession(draft, draft.conversation(id))
    await this.ledger.commit({ kind: 'note', rootId: session.rootId, plan })
  }

  /**
   * Adds nodes and edges, all or none; those that can run do. `change` may be called again after a race, and may not be async:
   * what it would put in later is refused.
   */
  async mutate<T>(change: (mutation: Mutation) => Settled<T>, options: MutateOptions = {}): Promise<Settled<T>> {
    const { runId } = readOptions('mutate(change, options)', options, { runId: text })
    if (typeof change !== 'function') {
      throw new InputError(
        'invalid_input',
        'mutate(change): change must be a function: (graph) => graph.createNode(...).',
      )
    }
    const { caller: ceiling } = this
    const bounds = await this.known((tree, row) => this.home.boundsOf(tree, row, ceiling))
    const scope = { conversationId: this.id, ceiling, ...bounds, ...(runId === undefined ? {} : { runId }) }
    return this.ledger.commit({
      kind: 'mutate',
      rootId: this.rootId,
      plan: (draft) => planMutate(draft, scope, change),
    })
  }

  private async switch(names: readonly string[], isOn: boolean): Promise<{ readonly [group: string]: boolean }> {
    const groups = await this.known((tree, row) => this.knownGroups(tree, row))
    const unknown = names.find((name) => !groups.has(name))
    if (unknown !== undefined) throw new NotFoundError('not_found', `Tool group '${unknown}' does not exist.`)
    const changes = new Map(names.map((name) => [name, isOn]))
    return switchGroups(this.ledger, this.id, { groups, changes })
  }

  private knownGroups(tree: TreeReader, row: Conversation): Groups {
    const groups = this.home.groupsOf(tree, row)
    if (groups !== undefined) return groups
    const message = `This process has no code for the agent "${row.agent.name}", so its groups are not known.`
    throw new NotFoundError('not_found', `${message} Name it in createRuntime({ agents }).`)
  }
}

const NO_CHANGES: ReadonlyMap<string, boolean> = new Map()
