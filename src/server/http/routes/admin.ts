// Routes for those who look after the server: an import takes lines, and all others are operations.

import { parseJson } from '../../../core/base/json.ts'
import { json, type Route, type RouteCall } from '../table/route.ts'
import { routesOf } from '../table/routes-of.ts'
import { answer } from './parts.ts'

const IMPORT_BYTES = 100_000_000

const IMPORT: Route = {
  method: 'POST',
  path: '/v1/import',
  scope: 'admin',
  summary: 'Takes a tree that an export gave, with the same hashes, or nothing of it.',
  query: {
    goOn: {
      type: 'boolean',
      description:
        'Lets open runs of the tree go on at once, for who looks after the whole store and is trusted with programs. Else they are stopped.',
    },
  },
  takesLines: true,
  maxBody: IMPORT_BYTES,
  answers: {
    200: answer('Imported', 'The same tree is there already: the id of its root conversation.'),
    201: answer('Imported', 'The id of its root conversation.'),
    409: { description: 'Another tree of this id is there.' },
  },
  handler: async ({ runtime, lines, server, query }) => {
    const found = { isKnown: false }
    const noted = noting(lines, async (first) => {
      found.isKnown = await server.hasTree(rootIn(first))
    })
    return json(
      { conversationId: await runtime.import(noted, { goOn: query.flag('goOn') }) },
      found.isKnown ? 200 : 201,
    )
  },
}

/** Tokens of an owner are gone with him: whoever still reads with one is asked again. */
const forgotten = async ({ server }: RouteCall) => {
  server.tokens.refresh()
  await server.streams.recheck()
}

export const ADMIN_ROUTES: readonly Route[] = [
  ...routesOf('settings'),
  ...routesOf('owners', { forgetOwner: [IMPORT] }, { forgetOwner: forgotten }),
  ...routesOf('usage'),
  ...routesOf('processes'),
]

/** The lines, and a look at the first of them before it is given on. */
async function* noting(lines: AsyncIterable<string>, look: (first: string) => Promise<void>): AsyncGenerator<string> {
  let isFirst = true
  for await (const line of lines) {
    if (isFirst) await look(line)
    isFirst = false
    yield line
  }
}

/** The root that the first line of an export names; empty where it names none. */
function rootIn(line: string): string {
  const read = parseJson(line)
  const rootId: unknown = read.ok ? Reflect.get(Object(read.value), 'rootId') : undefined
  return typeof rootId === 'string' ? rootId : ''
}
