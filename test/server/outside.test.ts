import { createRuntime } from 'legate'
import { connect } from 'legate/client'
import { expect, test } from 'vitest'
import { PRINCIPAL_METHODS, RUNTIME_METHODS } from '../../src/core/operations/methods.made.ts'
import { OPERATIONS } from '../../src/core/operations/table.ts'
import { REQUESTS } from '../../src/core/operations/wire/requests.made.ts'
import { TABLE } from '../../src/server/http/routes/table.ts'

// What is outside of the table of operations, each with its reason. Everything else is declared there, once.

const ROUTES: Readonly<Record<string, readonly string[]>> = {
  'It starts a run, and answers with the run, its outcome or its stream.': [
    'POST /v1/runs',
    'POST /v1/conversations/{id}/messages',
  ],
  'It waits for the end of a run.': ['GET /v1/runs/{id}/result'],
  'It streams.': ['GET /v1/runs/{id}/events', 'GET /v1/conversations/{id}/events', 'GET /v1/feed'],
  'It takes or gives lines.': ['POST /v1/import', 'GET /v1/conversations/{id}/export'],
  'It gives a text in parts.': ['GET /v1/results/{id}'],
  'It is about the server itself.': [
    ...['GET /health', 'GET /ready', 'GET /metrics', 'GET /v1', 'GET /v1/openapi.json'],
    ...['GET /.well-known/oauth-protected-resource', 'GET /.well-known/oauth-protected-resource/mcp'],
  ],
}

/** Protocols of others say what they ask and answer, and pages are for people. */
const OF_OTHERS = /^\w+ (?:\/(?:ai-sdk|ag-ui|a2a|mcp)\b|\/\.well-known\/agent)/

const OF_RUNTIME: Readonly<Record<string, readonly string[]>> = {
  'It starts a run, or makes a handle of one or of a conversation.': [
    'run',
    'spawn',
    'resume',
    'attach',
    'conversation',
  ],
  'It streams.': ['events', 'export'],
  'It begins at once, before anything is loaded.': ['cancel'],
  'It is about this process: its agents, its code, its end.': [
    ...['agents', 'agentNamed', 'findAgent', 'explain', 'requestOf', 'as', 'idle', 'close', 'isStoreFull', 'useTape'],
    ...['dropCaches', 'conversationIdFor'],
  ],
}

const OF_PRINCIPAL: Readonly<Record<string, readonly string[]>> = {
  'It starts a run, or makes a handle of one or of a conversation.': ['run', 'attach', 'conversation'],
  'It streams.': ['events'],
  'It is about the principal, or about an agent by its name.': [
    ...['may', 'require', 'untrustedAgents', 'conversationIdFor', 'explain'],
  ],
  'It performs operations.': ['serve'],
}

const OF_CLIENT: Readonly<Record<string, readonly string[]>> = {
  'It starts a run, waits for its end, or makes a handle of a conversation.': ['run', 'result', 'conversation'],
  'It streams.': ['events', 'feed', 'follow'],
  'It reads a page of a stream, lines, or a text in parts.': ['eventPage', 'import', 'body'],
  'It is about the server itself.': ['info', 'request'],
  'It chooses one of three operations by the word.': ['answer'],
}

test('a route is an operation, or outside of the table for a reason', () => {
  const operations = Object.values(OPERATIONS).flatMap((subject) => Object.values(subject).map(({ http }) => http))
  const others = TABLE.filter(({ isPage }) => isPage !== true)
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route) => !operations.some((http) => http === route) && !OF_OTHERS.test(route))

  expect(others.sort()).toEqual(Object.values(ROUTES).flat().sort())
})

test('a public method of a runtime, of a principal or of a client is an operation, or outside for a reason', async () => {
  await using runtime = createRuntime()
  const client = connect({ url: 'http://localhost' })

  expect(ownOf(runtime, namesIn(RUNTIME_METHODS), OF_RUNTIME)).toEqual([])
  expect(ownOf(runtime.as({ id: 'ann', scopes: [] }), namesIn(PRINCIPAL_METHODS), OF_PRINCIPAL)).toEqual([])
  expect(ownOf(client, Object.keys(REQUESTS), OF_CLIENT)).toEqual([])
})

/** The methods of neither list, without those that the sources call private. */
function ownOf(
  value: object,
  operations: readonly string[],
  outside: Readonly<Record<string, readonly string[]>>,
): readonly string[] {
  const known = [...operations, ...Object.values(outside).flat(), ...PRIVATE]
  const found: string[] = []
  for (let at: object | null = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    if (at !== value) found.push(...Object.getOwnPropertyNames(at))
  }
  return found.filter((name) => !known.includes(name))
}

function namesIn(methods: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(methods).flatMap((names) => names.split(' '))
}

const PRIVATE = [
  ...['constructor', 'attachFor', 'conversationFor', 'start', 'committed', 'copy', 'dropCopies', 'copiesSettled'],
  ...['sessionCopies', 'mayWait', 'end', 'watch', 'swept', 'operateWith', 'allSaid', 'cancelNow', 'refuseUnknown'],
  ...['cancelIn', 'recoverLost', 'saying', 'askingOf', 'perform', 'admitted', 'agentToStart', 'talk', 'handleOf'],
  ...['requireStart', 'requireAll', 'enter', 'reach', 'rootAt', 'placed', 'sees'],
]
