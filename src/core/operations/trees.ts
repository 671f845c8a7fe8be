// Operations of whole trees: rows and records for programs that show trees as those with the store do, and what changed.

import type { Importing } from '../audit/archive.ts'
import { InputError } from '../base/error.ts'
import { flag, readOptions } from '../base/options.ts'
import { maySee, seesEverything } from '../grant/principal.ts'
import type { Id } from '../graph/rows.ts'
import type { ChangePage } from '../store/feed.ts'
import { look } from '../store/look.ts'
import type { LimitQuery, Page } from './form/page.ts'
import type { FoundIds, TreeEvents, TreesPage, TreesQuery } from './look/find.ts'
import type { ImportOptions } from './look/import-as.ts'
import { SeenLists } from './look/seen-lists.ts'
import type { TreeData, TreeQuery } from './look/tree-data.ts'
import { operation } from './operation.ts'
import type { Asking, Operating } from './port.ts'

const LEAST_TYPED = 4
const MOST_TREES = 200

export const TREES = {
  /** Finds ids by their ending: in all trees for a principal that sees everything, else in the newest 200 that it sees. */
  find: operation({
    summary: 'The runs, conversations and nodes that you see whose id ends in this way.',
    scope: 'read',
    http: 'GET /v1/find',
    query: { ending: { type: 'string', description: 'At least the last 4 characters of an id.', default: '' } },
    plain: ['ending'],
    gives: ['FoundIds', 'What was found, and the newest deleted one where nothing was.'],
    example: { query: 'ending=00000000' },
    as: find,
    serve: async (who, ending: string): Promise<FoundIds> => {
      if (/^[0-9a-f-]{4,36}$/.test(ending)) return find(who, ending)
      throw new InputError(
        'invalid_input',
        `Give at least the last ${LEAST_TYPED} characters of an id: ?ending=1f0c9a2e.`,
      )
    },
  }),

  /** The newest trees that the principal sees, or those with an open run, with their open nodes. */
  trees: operation({
    summary: 'The rows of the newest trees that you see, or of those with an open run, with their open nodes.',
    scope: 'read',
    http: 'GET /v1/trees',
    query: {
      state: {
        type: 'string',
        description: '`open`: only trees with an open run.',
        enum: ['open', 'any'],
        default: 'any',
      },
      owner: { type: 'string', description: 'Only those of this owner.' },
      before: { type: 'string', description: 'The `next` of the page before.' },
      limit: { type: 'integer', description: 'The most trees.', minimum: 1, maximum: MOST_TREES, default: 50 },
    },
    gives: ['Trees', 'The trees, newest first.'],
    as: trees,
    ask: ({
      state,
      limit = 50,
      ...query
    }: LimitQuery & {
      /** `open`: only trees with an open run. Default `any`. */
      readonly state?: 'open' | 'any'
      /** Only those of this owner. */
      readonly owner?: string
      /** The `next` of the page before. */
      readonly before?: Id
    }): TreesQuery => ({ ...query, limit, isOpen: state === 'open' }),
    wire: (page: TreesPage): Page<'trees', TreeData> => page,
  }),

  /** The rows of a tree as data, by the id of anything in it, page by page. */
  treeData: operation({
    summary: 'The rows of one tree, by the id of anything in it.',
    scope: 'read',
    of: 'tree',
    http: 'GET /v1/trees/{id}',
    query: {
      nodes: { type: 'string', description: 'All nodes, or the open ones.', enum: ['all', 'open'], default: 'all' },
      after: { type: 'string', description: 'The `next` of the page before.' },
    },
    gives: ['Rows', 'Conversations, turns, nodes, edges and links.'],
    as: async ({ on, root }, _id: Id, query: TreeQuery = {}): Promise<TreeData> => {
      const { readTreeData } = await import('./look/tree-data.ts')
      return readTreeData(on.store, root.id, query)
    },
  }),

  /** Recorded events of a tree, and what its running nodes have said so far. */
  treeEvents: operation({
    summary: 'Recorded events of a whole tree, and what its running nodes have said so far.',
    scope: 'read',
    of: 'tree',
    http: 'GET /v1/trees/{id}/events',
    query: {
      after: { type: 'integer', description: 'Only events after this `seq`.', default: 0 },
      limit: { type: 'integer', description: 'The most events.', minimum: 1, maximum: 1_000, default: 500 },
    },
    gives: ['TreeEvents', 'The events, in order, and the blocks of running nodes.'],
    as: async (
      { on, root },
      _id: Id,
      {
        after = 0,
        limit = 500,
      }: LimitQuery & {
        /** Only events after this `seq`. */
        readonly after?: number
      } = {},
    ): Promise<TreeEvents> => {
      const { treeEventPage } = await import('./look/find.ts')
      return treeEventPage(on.store, root.id, { after, limit })
    },
  }),

  /** All of a tree as JSON Lines. */
  export: operation({
    scope: 'export',
    of: 'conversation',
    as: async ({ on }, rootId: Id): Promise<AsyncIterable<string>> => {
      const { exportTree } = await import('../audit/archive.ts')
      return exportTree(on.store, rootId)
    },
  }),

  /**
   * Takes a tree that `export` gave, as lines or as one text, or nothing of it. Gives the id of its root conversation. Open runs are
   * stopped before anybody sees them, unless you say `goOn`.
   */
  import: operation({
    scope: 'admin',
    run: async (on, lines: Lines, options: ImportOptions = {}): Promise<Id> => {
      const { goOn = false } = readOptions('import(lines)', options, { goOn: flag })
      return importOf(on, lines, { goOn })
    },
    // Whose the tree is, the tree itself says: an admin brings in those that it sees then, as history to look at. Only who looks
    // after the whole store brings in what later runs go by, and open runs that go on, if it is trusted with programs.
    as: async ({ on, principal, layers, ...who }, lines: Lines, options: ImportOptions = {}): Promise<Id> => {
      const { importAs } = await import('./look/import-as.ts')
      const parts = {
        importOf: (given: Lines, how: Importing) => importOf(on, given, how),
        trusted: who.trusted,
        requireDay: who.requireDay,
      }
      return importAs({ principal, layers, parts }, lines, options)
    },
  }),

  /** The `seq` of the last event of the tree that has this conversation. */
  lastSeq: operation({
    scope: 'read',
    of: 'conversation',
    as: async ({ on, root }, _conversationId: Id): Promise<number> =>
      look(on.store, root.id, (tree) => tree.lastSeq(root.id)),
  }),

  /**
   * Which trees went on after a cursor, in whichever process: something began, ended, or needs a person. `changes(null, 0)` gives
   * the cursor of now. Changes of one tree come in their order. `isCut`: some after the cursor are gone, so list the runs anew.
   */
  changes: operation({
    scope: 'read',
    run: (on, after: string | null, limit: number) => changes(on, after, limit),
    as: async ({ on, principal }, after: string | null, limit: number): Promise<ChangePage> => {
      const page = await changes(on, after, limit)
      const seen = page.changes.filter(({ owner }) => maySee(principal, owner))
      return { ...page, changes: new SeenLists(principal).ofItsAgents(seen) }
    },
  }),
} as const

type Lines = Iterable<string> | AsyncIterable<string>

async function importOf({ ledger }: Operating, lines: Lines, how: Importing): Promise<Id> {
  const { importTree } = await import('../audit/archive.ts')
  return importTree(ledger, lines, how)
}

async function find(who: Asking, ending: string): Promise<FoundIds> {
  const { findIds, findIn } = await import('./look/find.ts')
  if (seesEverything(who.principal)) return findIds(who.on.store, ending)
  return findIn((query) => trees(who, query), ending)
}

async function trees({ on, principal, placed }: Asking, query: TreesQuery): Promise<TreesPage> {
  const { listTrees } = await import('./look/find.ts')
  return listTrees(on.store, await placed(query), new SeenLists(principal))
}

async function changes({ store, recordings }: Operating, after: string | null, limit: number): Promise<ChangePage> {
  await recordings.settled()
  return store.changes(after, limit)
}
