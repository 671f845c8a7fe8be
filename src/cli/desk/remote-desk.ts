// A server as a desk: see `desk.ts`. Everything goes through the API, as whoever the token stands for.

import {
  type AuditOptions,
  type AuditReport,
  type ImportOptions,
  look,
  type PruneOptions,
  type Tombstone,
} from '../../doors/rows.ts'
import type { Id, InboxItem, PendingApproval, PendingQuestion, Principal, RunEvent, RunOutcome } from '../../index.ts'
import {
  ClientError,
  type ConversationClient,
  type LegateClient,
  type Page,
  type QueryValues,
} from '../../server/client/index.ts'
import { CliError, EXIT } from '../command/command.ts'
import { oneLine } from '../terminal/clean.ts'
import type { Desk, DeskConversation, DeskRun } from './desk.ts'
import { RemoteRows } from './remote-rows.ts'

/** The most items that one page has, and the last place at which a page begins. */
const PAGE = 1_000
const LAST_FROM = 100_000

/** Operations that a client has in the form of a runtime: a desk hands them on as they are. */
const READS = ['why', 'diff', 'otlp', 'picture'] as const
/** Operations after which rows are read again. */
const CHANGES = ['cancel', 'answer', 'settle', 'forget', 'forgetOwner'] as const

type SameActs = Pick<Desk, (typeof READS)[number] | (typeof CHANGES)[number]>
type Processes = Awaited<ReturnType<Desk['processes']>>
type ProcessesQuery = NonNullable<Parameters<Desk['processes']>[0]>

/** Makes the desk of a server. */
export function remoteDesk(client: LegateClient): Desk {
  const acts = new RemoteActs(client)
  const { store } = acts
  const handOn = (name: (typeof READS)[number] | (typeof CHANGES)[number]) => {
    return (...given: readonly unknown[]) =>
      store.patiently(() => (client[name] as Act).apply(client, given.map(unsigned)))
  }
  const change = (name: (typeof CHANGES)[number]) => {
    return (...given: readonly unknown[]) => handOn(name)(...given).finally(() => store.forget())
  }
  const same = [...READS.map((name) => [name, handOn(name)]), ...CHANGES.map((name) => [name, change(name)])]
  return Object.assign(acts, Object.fromEntries(same) as SameActs)
}

type Act = (...given: readonly unknown[]) => Promise<unknown>

/** A word without who says it: the server names that. */
function unsigned(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || !('by' in given)) return given
  const { by: _, ...word } = given
  return word
}

class RemoteActs implements Omit<Desk, keyof SameActs> {
  readonly store: RemoteRows
  private readonly client: LegateClient
  private readonly lists: Map<string, readonly unknown[]> = new Map()

  constructor(client: LegateClient) {
    this.client = client
    this.store = new RemoteRows(client)
  }

  readonly speaker = async (): Promise<string> => (await this.principal()).id

  /** Before an id is looked for: whoever may not answer would hear that there is no such id. */
  readonly requireScope = async (scope: Principal['scopes'][number]): Promise<void> => {
    const { id, scopes } = await this.principal()
    if (!scopes.includes(scope)) throw new CliError(`${oneLine(id)} lacks the scope ${scope}.`)
  }

  private async principal(): Promise<Pick<Principal, 'id' | 'scopes'>> {
    return (await this.store.get<{ readonly principal: Pick<Principal, 'id' | 'scopes'> }>('/v1')).principal
  }

  async approvals({ limit, after, runId }: Parameters<Desk['approvals']>[0] = {}): Promise<PendingApproval[]> {
    const approvals = await this.list<'approvals', PendingApproval>('approvals', '/v1/approvals', { after })
    const wanted = runId === undefined ? approvals : await this.below(approvals, runId)
    return pageAfter(wanted, limit, after && ((one) => one.nodeId === after.nodeId))
  }

  async questions({ limit, after }: Parameters<Desk['questions']>[0] = {}): Promise<PendingQuestion[]> {
    const questions = await this.list<'questions', PendingQuestion>('questions', '/v1/questions', { after })
    return pageAfter(questions, limit, after && ((one) => one.nodeId === after.nodeId))
  }

  async inbox({ limit, after, owner }: Parameters<Desk['inbox']>[0] = {}): Promise<InboxItem[]> {
    const query = owner === undefined ? {} : { owner }
    const items = await this.list<'items', InboxItem>('items', '/v1/inbox', { after, query })
    const isLast = after && ((one: InboxItem) => one.runId === after.runId && one.nodeId === after.nodeId)
    return pageAfter(items, limit, isLast)
  }

  /** Those requests that a run of the same tree made. */
  private async below(approvals: readonly PendingApproval[], runId: Id): Promise<readonly PendingApproval[]> {
    const rootId = await this.store.rootOf(runId)
    const roots = await Promise.all(approvals.map(({ conversationId }) => this.store.rootOf(conversationId)))
    return approvals.filter((_, at) => roots[at] === rootId)
  }

  /**
   * All items of a list. Whoever reads on (`after`) gets those of the first look: what somebody answers meanwhile moves no item out
   * of sight.
   */
  private async list<Name extends string, Item>(
    name: Name,
    path: string,
    { after, query = {} }: { readonly after: object | undefined; readonly query?: QueryValues },
  ): Promise<readonly Item[]> {
    const known = this.lists.get(path)
    if (known !== undefined && after !== undefined) return known as readonly Item[]
    const found: Item[] = []
    for (let from: number | null = 0; from !== null && from <= LAST_FROM; ) {
      const page: Page<Name, Item> = await this.store.get(path, {
        ...query,
        limit: PAGE,
        ...(from === 0 ? {} : { from }),
      })
      found.push(...page[name])
      from = typeof page.next === 'number' ? page.next : null
    }
    this.lists.set(path, found)
    return found
  }

  async audit({ repair = false, ...options }: AuditOptions = {}): Promise<AuditReport> {
    if (repair) throw new CliError('--repair works on the store itself: leave out --server.', EXIT.usage)
    return this.client.audit(options)
  }

  async *export(rootId: Id): AsyncGenerator<string> {
    const text = await this.client.conversation(rootId).export()
    for (const line of text.split('\n')) if (line !== '') yield line
  }

  async import(lines: Iterable<string> | AsyncIterable<string>, { goOn = false }: ImportOptions = {}): Promise<Id> {
    const all: string[] = []
    for await (const line of lines) all.push(`${line}\n`)
    const { conversationId } = await this.client.import(all.join(''), { goOn })
    this.store.forget()
    return conversationId
  }

  async prune(options: PruneOptions): Promise<Tombstone[]> {
    const { tombstones } = await this.client.prune(options).finally(() => this.store.forget())
    return [...tombstones]
  }

  /** For those who may not see processes, whoever has claimed a node is taken to live. */
  async processes(query: ProcessesQuery = {}): Promise<Processes> {
    try {
      return (await this.store.get<{ readonly processes: Processes }>('/v1/processes', { ...query })).processes
    } catch (error) {
      if (error instanceof ClientError && error.status === 403) return this.store.seenProcesses()
      throw error
    }
  }

  async attach(runId: Id): Promise<DeskRun> {
    const rootId = await this.store.rootOf(runId)
    const turn = rootId === undefined ? undefined : await look(this.store, rootId, (tree) => tree.turn(runId))
    const result = this.client.result(runId).finally(() => this.store.forget()) as Promise<RunOutcome<unknown>>
    result.catch(() => undefined)
    const conversationId = turn?.conversationId ?? ''
    const events = (options = { after: 0 }) => this.events(runId, options.after)
    const cancel = (reason?: string) => this.client.cancel(runId, reason)
    return { id: runId, conversationId, result, events, cancel, [Symbol.asyncIterator]: () => events() }
  }

  private async *events(runId: Id, after: number): AsyncGenerator<RunEvent> {
    for await (const event of this.client.events(runId, { after })) yield* asDeltas(event)
  }

  async conversation(id: Id): Promise<DeskConversation> {
    const talk = this.client.conversation(id)
    const changed = <Answer>(answer: Promise<Answer>) => answer.finally(() => this.store.forget())
    return {
      id,
      transcriptPage: (query = {}) => this.rounds(talk, query),
      history: {
        edit: async (nodeId, text) => runIn(await changed(talk.edit(nodeId, text))),
        retry: async (nodeId) => runIn(await changed(talk.retry(nodeId))),
        fork: async (nodeId, options) => {
          const { conversationId = '', runId = null } = await changed(talk.fork(nodeId, options))
          return { id: conversationId, run: runId === null ? null : { id: runId } }
        },
      },
    }
  }

  /** As many rounds as were asked for: a page of the server ends at 8 MB, and has the beginning of a longer text. */
  private async rounds(
    talk: ConversationClient,
    query: NonNullable<Parameters<DeskConversation['transcriptPage']>[0]>,
  ): Promise<TranscriptPage> {
    const { turnsLeft: limitTurns, ...page } = await talk.transcriptPage(query)
    const { runIds, beforeRunId, transcript } = await this.whole(page)
    if (limitTurns === undefined || beforeRunId === null) return { ...page, transcript }
    const older = await this.rounds(talk, { beforeRunId, limitTurns })
    return {
      runIds: [...older.runIds, ...runIds],
      beforeRunId: older.beforeRunId ?? beforeRunId,
      afterRunId: page.afterRunId,
      transcript: [...older.transcript, ...transcript],
    }
  }

  private async whole(page: TranscriptPage): Promise<TranscriptPage> {
    const lines = page.transcript.map(async ({ wholeBytes, ...line }) =>
      wholeBytes === undefined ? line : { ...line, text: await this.client.body(line.nodeId) },
    )
    return { ...page, transcript: await Promise.all(lines) }
  }

  /** The processes of the server do it. */
  async resume(): Promise<void> {}
}

type TranscriptPage = Awaited<ReturnType<DeskConversation['transcriptPage']>>

function runIn({ runId }: { readonly runId?: Id | null }): { readonly id: Id } {
  return { id: runId ?? '' }
}

/** The items after the last one of the page before, at most so many. */
function pageAfter<Item>(items: readonly Item[], limit?: number, isLast?: (item: Item) => boolean): Item[] {
  const from = isLast === undefined ? 0 : items.findIndex(isLast) + 1
  if (isLast !== undefined && from === 0) return []
  return items.slice(from, limit === undefined ? undefined : from + limit)
}

/** The words of a node before we came, as the pieces that a reader from the beginning would have got. */
function* asDeltas(event: RunEvent): Generator<RunEvent> {
  if (event.type !== 'live') {
    yield event
    return
  }
  const { text, reasoning, calls: _, attempt: __, ...place } = event
  if (reasoning !== '') yield { ...place, type: 'reasoning-delta', text: reasoning } as RunEvent
  if (text !== '') yield { ...place, type: 'text-delta', text } as RunEvent
}
