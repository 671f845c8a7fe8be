import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Runtime } from 'legate'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TABLE } from '../../src/server/http/routes/table.ts'
import { takesBody } from '../../src/server/http/table/route.ts'
import {
  type NarrowScene,
  nowhere,
  openNarrowScene,
  secretOf,
  type Target,
  Trees,
  targetOf,
  UNKNOWN,
} from './support/narrow-scene.ts'

// Every route of the table with tokens of the same id that may do less than another one. A new route without a row fails.
//
// `agents`  sees one agent; what it reaches for are its own trees of other agents.
// `sees`    sees its own owner; what it reaches for are trees of another one.
// `day`     sees as much, and has nothing left of its day.
// revoked   was made with a token that is gone.
// In each cell the wide token gets what the narrower one does not.

/** What a narrower token gets. */
type Verdict =
  /** The same bytes as for an id that nobody has. */
  | 'unknown'
  /** 403. */
  | 'denied'
  /** An answer without what it may not see; the wide token has it in its own. */
  | 'filtered'
  /** An answer about itself or about nothing of anybody. */
  | 'own'

interface Asked {
  readonly path: string
  readonly body?: unknown
  readonly lines?: string
  readonly headers?: Readonly<Record<string, string>>
}

interface Case {
  readonly agents: Verdict
  readonly sees: Verdict
  /** `over`: it would begin a run, and is refused. `allowed`: the day does not matter. `unknown`: another token is another caller. */
  readonly day: 'over' | 'allowed' | 'unknown'
  readonly ask: (target: Target) => Asked | Promise<Asked>
  /** The answers to who may. */
  readonly control?: readonly number[]
  /** The status of `unknown`, where it is not 404. */
  readonly status?: number
  /** Texts that only who may see them has in the answer. */
  readonly marks?: (target: Target, kind: 'agents' | 'sees') => readonly string[] | Promise<readonly string[]>
  /** It changes what it is about. */
  readonly isChange?: true
  /** There is nothing to be had behind what the wide token reaches. */
  readonly isAlike?: true
  /** It lists the newest only, so the trees are made for it. */
  readonly isNew?: true
  /** It would change too much: who may asks for it about this owner. */
  readonly about?: string
}

let scene: NarrowScene
/** A run that every token sees. */
let mine = { run: '', conversation: '' }
let before = ''
let bobsToken = ''
const exported = new Map<string, string>()
let idsOfKeys = 0

beforeAll(async () => {
  scene = await openNarrowScene()
  const { setting, own, others, tokens } = scene
  before = Buffer.from((await setting.runtime.changes(null, 0)).cursor).toString('base64url')
  mine = await own.of('greeter')
  for (const trees of [own, others]) {
    for (const name of ['host', 'careful', 'curious', 'shop', 'clumsy', 'payer'] as const) await trees.of(name)
    const lines: string[] = []
    for await (const line of setting.runtime.export((await trees.of('host')).conversation)) lines.push(line)
    exported.set(trees.owner, lines.join('\n'))
  }
  await chat('careful', 'chat-1', tokens.wide)
  await setting.post('/v1/runs?wait=10', { agent: 'host', input: 'Hi' }, keyed('taken', tokens.wide))
  const bob = { id: 'bob', scopes: ['read'] as const }
  bobsToken = (await setting.tokenFor(bob)).slice(4, 20)
}, 60_000)

afterAll(() => scene.setting[Symbol.asyncDispose]())

const MCP = { accept: 'application/json, text/event-stream' }
const A2A = { 'a2a-version': '1.0' }
const HOOK = { url: 'https://hooks.example/a2a' }
const WEBHOOK = { url: 'https://hooks.example/legate', types: ['run.ended'] }
const hooks = new Map<string, string>()
const keyed = (key: string, token: string) => ({ token, headers: { 'idempotency-key': key } })

async function chat(name: string, chatId: string, token: string): Promise<void> {
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }
  const body = { id: chatId, messages: [message], trigger: 'submit-message' }
  await (await scene.setting.post(`/ai-sdk/${name}`, body, { token })).text()
}

async function opened(token: string): Promise<string | null> {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params }
  const answer = await scene.setting.post('/mcp', body, { token, headers: MCP })
  await answer.text()
  return answer.headers.get('mcp-session-id')
}

/** A case of a route that is about one thing behind an id. */
function behind(ask: Case['ask'], more: Partial<Case> = {}): Case {
  return { agents: 'unknown', sees: 'unknown', day: 'allowed', ask, ...more }
}

/** A case of a route that lists. */
function listing(ask: Case['ask'], marks: Case['marks'], more: Partial<Case> = {}): Case {
  return {
    agents: 'filtered',
    sees: 'filtered',
    day: 'allowed',
    ask,
    ...(marks === undefined ? {} : { marks }),
    ...more,
  }
}

/** A case of a route that is about an agent by name: whose trees there are does not matter. */
function ofAgent(ask: Case['ask'], more: Partial<Case> = {}): Case {
  return { agents: 'unknown', sees: 'own', day: 'allowed', ask, ...more }
}

const itself = (ask: Case['ask'], more: Partial<Case> = {}): Case => ({
  ...{ agents: 'own', sees: 'own', day: 'allowed' },
  ...more,
  ask,
})

const hostIds = async (target: Target) => {
  const { run, conversation } = await target.of('host')
  return [run, conversation]
}

const run = (suffix: string, more: Partial<Case> = {}, of: 'host' | 'careful' = 'host') =>
  behind(async (target) => ({ path: `/v1/runs/${(await target.of(of)).run}${suffix}` }), more)
const conversation = (suffix: string, more: Partial<Case> = {}) =>
  behind(async (target) => ({ path: `/v1/conversations/${(await target.of('host')).conversation}${suffix}` }), more)
const node = (suffix: string, more: Partial<Case> = {}) =>
  behind(async (target) => ({ path: `/v1/nodes/${(await target.of('host')).answer}${suffix}` }), more)

/** A page behind a tree. */
const cursor = (path: string) =>
  behind(async (target) => ({ path: `${path}${(await target.of('host')).conversation}` }), { status: 200 })

/** A page of a conversation that all see, behind something of another one: nobody gets one. */
const ofMine = (suffix: string, id: (place: Awaited<ReturnType<Target['of']>>) => string) =>
  behind(
    async (target) => ({ path: `/v1/conversations/${mine.conversation}${suffix}${id(await target.of('host'))}` }),
    { status: 400, control: [404, 400], isAlike: true },
  )

/** A change of the history of the host's conversation, or of another one. */
function change(
  name: string,
  body: (place: Awaited<ReturnType<Target['of']>>) => object,
  more: Partial<Case> & { readonly of?: 'host' | 'clumsy' | 'careful' } = {},
): Case {
  const { of = 'host', ...rest } = more
  const ask = async (target: Target) => {
    const place = await target.of(of)
    return { path: `/v1/conversations/${place.conversation}/${name}`, body: body(place) }
  }
  return behind(ask, { isChange: true, ...rest })
}

const BEGINS = { day: 'over', isChange: true } as const

function mcp(method: string, params: (target: Target) => object | Promise<object>, more: Partial<Case> = {}): Case {
  const ask = async (target: Target) => {
    return { path: '/mcp', body: { jsonrpc: '2.0', id: 1, method, params: await params(target) }, headers: MCP }
  }
  return behind(ask, { status: 200, ...more })
}

const mcpRun = (name: string, more: Partial<Case> = {}, of: 'host' | 'careful' = 'host') =>
  mcp('tools/call', async (target) => ({ name, arguments: { run_id: (await target.of(of)).run, seconds: 0 } }), more)

function message(text: string, contextId?: string): object {
  const id = `message-${idsOfKeys++}`
  return {
    message: { messageId: id, role: 'ROLE_USER', parts: [{ text }], ...(contextId === undefined ? {} : { contextId }) },
  }
}

/** Methods of A2A over JSON-RPC. An agent that a token does not see has no endpoint: 404. */
const a2aMethods = (path: string): Readonly<Record<string, Case>> => {
  const taskOf = async (target: Target, of: 'host' | 'careful' = 'host') => ({ id: (await target.of(of)).run })
  const rpc = (method: string, params: (target: Target) => object | Promise<object>, more: Partial<Case> = {}) => {
    const ask = async (target: Target) => {
      const body = { jsonrpc: '2.0', id: 1, method, params: await params(target) }
      return { path: path.replace('{agent}', target.agent('host')), body, headers: A2A }
    }
    return behind(ask, { status: 200, ...more })
  }
  return {
    GetTask: rpc('GetTask', (target) => taskOf(target)),
    ListTasks: rpc('ListTasks', () => ({}), { sees: 'own' }),
    CancelTask: rpc('CancelTask', (target) => taskOf(target)),
    SubscribeToTask: rpc('SubscribeToTask', (target) => taskOf(target)),
    SendMessage: rpc('SendMessage', () => message('Go.'), { sees: 'own', ...BEGINS }),
    'SendMessage in a context': rpc(
      'SendMessage',
      async (target) => message('Go.', (await target.of('host')).conversation),
      BEGINS,
    ),
    'SendMessage to a task': rpc('SendMessage', async (target) => {
      const { message: said } = message('Go.') as { message: object }
      return { message: { ...said, taskId: (await target.of('host')).run } }
    }),
  }
}

const task = (
  suffix: string,
  more: Partial<Case> & { readonly body?: object; readonly of?: 'host' | 'careful' } = {},
) => {
  const { body, of = 'host', ...rest } = more
  return behind(async (target) => {
    const path = `/a2a/${target.agent(of)}/tasks/${(await target.of(of)).run}${suffix}`
    return { path, headers: A2A, ...(body === undefined ? {} : { body }) }
  }, rest)
}

const a2aSend = (suffix: string): Readonly<Record<string, Case>> => ({
  'a new task': ofAgent(
    (target) => ({ path: `/a2a/${target.agent('host')}${suffix}`, body: message('Go.'), headers: A2A }),
    BEGINS,
  ),
  'in a context': behind(
    async (target) => ({
      path: `/a2a/${target.agent('host')}${suffix}`,
      body: message('Go.', (await target.of('host')).conversation),
      headers: A2A,
    }),
    { status: 400, ...BEGINS },
  ),
})

const chatPath = (target: Target, suffix: string) => {
  const isThere = target.agent('careful') === 'careful' && target.owner === 'lea'
  return `/ai-sdk/careful/${isThere ? 'chat-1' : 'chat-none'}${suffix}`
}

/** Each route with what is asked of it. */
const ROWS: Readonly<Record<string, Case | Readonly<Record<string, Case>>>> = {
  'GET /metrics': itself(() => ({ path: '/metrics' }), { agents: 'denied', sees: 'denied' }),
  'GET /v1': itself(() => ({ path: '/v1' })),
  'GET /v1/openapi.json': itself(() => ({ path: '/v1/openapi.json' })),
  'GET /v1/agents': listing(
    () => ({ path: '/v1/agents' }),
    () => ['"host"', '"careful"'],
    { sees: 'own' },
  ),
  'GET /v1/agents/{name}': ofAgent((target) => ({ path: `/v1/agents/${target.agent('host')}` })),
  'POST /v1/agents/{name}/explain': ofAgent((target) => ({
    path: `/v1/agents/${target.agent('host')}/explain`,
    body: { request: 'tool:deploy' },
  })),
  'POST /v1/runs': {
    'of an agent': ofAgent(
      (target) => ({ path: '/v1/runs', body: { agent: target.agent('host'), input: 'Go.' } }),
      BEGINS,
    ),
    'in a conversation': behind(async (target) => {
      const { conversation: conversationId } = await target.of('host')
      return { path: '/v1/runs', body: { agent: target.agent('host'), input: 'Go.', conversationId } }
    }, BEGINS),
    // The agent is another one, so the wide token is told so.
    'in a conversation of another agent': behind(
      async (target) => {
        const { conversation: conversationId } = await target.of('host')
        return { path: '/v1/runs', body: { agent: 'greeter', input: 'Go.', conversationId } }
      },
      { control: [409], ...BEGINS },
    ),
  },
  'GET /v1/runs': {
    all: listing(() => ({ path: '/v1/runs?limit=1000' }), hostIds),
    'behind a cursor': cursor('/v1/runs?before='),
  },
  'GET /v1/runs/{id}': run(''),
  'GET /v1/runs/{id}/events': { stream: run('/events?after=0'), again: run('/events?after=1') },
  'GET /v1/runs/{id}/result': { now: run('/result'), later: run('/result?wait=1') },
  'POST /v1/runs/{id}/cancel': behind(
    async (target) => ({ path: `/v1/runs/${(await target.of('careful')).run}/cancel`, body: {} }),
    { isChange: true },
  ),
  'GET /v1/runs/{id}/why': run('/why'),
  'GET /v1/runs/{id}/usage': run('/usage'),
  'GET /v1/runs/{id}/timeline': run('/timeline'),
  'GET /v1/runs/{id}/otlp': run('/otlp?content=1'),
  'GET /v1/runs/{id}/nodes': run('/nodes'),
  'GET /v1/runs/{id}/diff/{other}': {
    'of it with another': behind(async (target) => ({
      path: `/v1/runs/${(await target.of('host')).run}/diff/${mine.run}`,
    })),
    'of another with it': behind(async (target) => ({
      path: `/v1/runs/${mine.run}/diff/${(await target.of('host')).run}`,
    })),
  },
  'GET /v1/runs/{id}/explain': run('/explain?request=tool:deploy'),
  'GET /v1/conversations': {
    all: listing(
      () => ({ path: '/v1/conversations?limit=1000' }),
      async (target) => (await hostIds(target)).slice(1),
    ),
    'behind a cursor': cursor('/v1/conversations?before='),
  },
  'GET /v1/conversations/{id}': conversation(''),
  'GET /v1/conversations/{id}/transcript': {
    all: conversation('/transcript'),
    'behind a cursor': ofMine('/transcript?beforeRunId=', ({ run: id }) => id),
    'after a cursor': ofMine('/transcript?afterRunId=', ({ run: id }) => id),
  },
  'GET /v1/conversations/{id}/tree': conversation('/tree'),
  'GET /v1/conversations/{id}/picture': conversation('/picture'),
  'GET /v1/conversations/{id}/graph': {
    all: conversation('/graph'),
    'behind a cursor': ofMine('/graph?before=', ({ run: id }) => id),
  },
  'GET /v1/conversations/{id}/events': conversation('/events?after=0'),
  'GET /v1/conversations/{id}/lanes': conversation('/lanes'),
  'GET /v1/conversations/{id}/usage': { lane: conversation('/usage'), tree: conversation('/usage?of=tree') },
  'GET /v1/conversations/{id}/sessions': conversation('/sessions'),
  'GET /v1/conversations/{id}/messages': {
    all: conversation('/messages'),
    'behind a cursor': ofMine('/messages?before=', ({ answer }) => answer),
    'after a cursor': ofMine('/messages?after=', ({ answer }) => answer),
  },
  'POST /v1/conversations/{id}/messages': change('messages', () => ({ input: 'And now?' }), BEGINS),
  'GET /v1/conversations/{id}/export': conversation('/export'),
  'DELETE /v1/conversations/{id}': conversation('', { isChange: true }),
  'POST /v1/conversations/{id}/sessions/{session}/close': behind(
    async (target) => {
      const { conversation: id, session } = await target.of('host')
      return { path: `/v1/conversations/${id}/sessions/${session}/close`, body: {} }
    },
    { isChange: true },
  ),
  'POST /v1/conversations/{id}/observe': change('observe', () => ({ content: 'By the way.' })),
  'POST /v1/conversations/{id}/fork': change('fork', ({ user }) => ({ nodeId: user }), BEGINS),
  'POST /v1/conversations/{id}/retry': change('retry', ({ answer }) => ({ nodeId: answer }), {
    of: 'clumsy',
    ...BEGINS,
  }),
  'POST /v1/conversations/{id}/rerun': change('rerun', ({ answer }) => ({ nodeId: answer }), BEGINS),
  'POST /v1/conversations/{id}/edit': change('edit', ({ user }) => ({ nodeId: user, content: 'Better.' }), BEGINS),
  'POST /v1/conversations/{id}/adopt': change('adopt', ({ answer }) => ({ nodeId: answer }), { control: [204, 409] }),
  'POST /v1/conversations/{id}/merge': change('merge', ({ lane }) => ({ laneIds: [lane] }), {
    control: [200, 409],
    ...BEGINS,
  }),
  'POST /v1/conversations/{id}/archive': change('archive', () => ({ mode: 'finish' })),
  'POST /v1/conversations/{id}/compress': change('compress', ({ run: id }) => ({ toRunId: id, summary: 'Short.' }), {
    control: [200, 409],
  }),
  'POST /v1/conversations/{id}/uncompress': change('uncompress', ({ answer }) => ({ summaryId: answer }), {
    control: [409],
  }),
  'POST /v1/conversations/{id}/compact': change('compact', ({ run: id }) => ({ runId: id, keep: [] })),
  'POST /v1/conversations/{id}/exclude': change('exclude', ({ answer }) => ({ nodeId: answer })),
  'POST /v1/conversations/{id}/include': change('include', ({ answer }) => ({ nodeId: answer })),
  'POST /v1/conversations/{id}/stop': change('stop', ({ open }) => ({ nodeId: open }), { of: 'careful' }),
  'POST /v1/conversations/{id}/skip': change('skip', ({ open }) => ({ nodeId: open }), {
    of: 'careful',
    control: [204, 409],
  }),
  'GET /v1/find': listing(
    async (target) => ({ path: `/v1/find?ending=${(await target.of('host')).run.slice(-10)}` }),
    async (target) => [(await target.of('host')).run],
  ),
  'GET /v1/trees': {
    all: listing(
      () => ({ path: '/v1/trees?limit=200' }),
      async (target) => (await hostIds(target)).slice(1),
    ),
    'behind a cursor': cursor('/v1/trees?before='),
    open: listing(
      () => ({ path: '/v1/trees?state=open&limit=200' }),
      async (target) => [(await target.of('careful')).conversation],
    ),
  },
  'GET /v1/trees/{id}': behind(async (target) => ({ path: `/v1/trees/${(await target.of('host')).conversation}` })),
  'GET /v1/trees/{id}/events': behind(async (target) => ({
    path: `/v1/trees/${(await target.of('host')).run}/events`,
  })),
  'GET /v1/nodes/{id}': node(''),
  'GET /v1/nodes/{id}/context': node('/context'),
  'GET /v1/nodes/{id}/request': node('/request'),
  'GET /v1/nodes/{id}/versions': node('/versions'),
  'GET /v1/nodes/{id}/explain': node('/explain?request=tool:deploy'),
  'GET /v1/results/{id}': behind(async (target) => ({ path: `/v1/results/${(await target.of('host')).answer}` })),
  'GET /v1/inbox': listing(() => ({ path: '/v1/inbox?limit=1000' }), waitingNodes),
  'POST /v1/uncertain/{nodeId}': {
    'that goes on': behind(async (target) => {
      const { open, seen } = await target.of('payer')
      return { path: `/v1/uncertain/${open}`, body: { happened: false, seen } }
    }, BEGINS),
    'that is left': behind(
      async (target) => {
        const { open, seen } = await target.of('payer')
        return { path: `/v1/uncertain/${open}`, body: { leave: true, seen } }
      },
      { isChange: true },
    ),
  },
  'GET /v1/approvals': listing(
    () => ({ path: '/v1/approvals?limit=1000' }),
    async (target) => [(await target.of('careful')).open],
  ),
  'POST /v1/approvals/{nodeId}': behind(
    async (target) => {
      const { open, seen } = await target.of('careful')
      return { path: `/v1/approvals/${open}`, body: { allow: true, seen } }
    },
    { isChange: true },
  ),
  'GET /v1/questions': listing(
    () => ({ path: '/v1/questions?limit=1000&outside=1' }),
    async (target) => [(await target.of('curious')).open, (await target.of('shop')).open],
  ),
  'POST /v1/questions/{nodeId}': behind(
    async (target) => {
      const { open, seen } = await target.of('curious')
      return { path: `/v1/questions/${open}`, body: { text: 'This one.', seen } }
    },
    { isChange: true },
  ),
  // The owner executes what waits outside, so another one's is for nobody else: the wide token is told so.
  'POST /v1/calls/{nodeId}/result': behind(
    async (target) => {
      const { open, seen } = await target.of('shop')
      return { path: `/v1/calls/${open}/result`, body: { result: 'red', seen } }
    },
    { isChange: true, control: [204, 403] },
  ),
  'GET /v1/feed': {
    changes: listing(
      () => ({ path: '/v1/feed', headers: { 'last-event-id': before } }),
      async (target) => (await hostIds(target)).slice(1),
    ),
    'a tree': behind(async (target) => ({ path: `/v1/feed?tree=${(await target.of('host')).conversation}:0` })),
  },
  'GET /v1/tokens': listing(
    () => ({ path: '/v1/tokens' }),
    (_, kind) => [bobsToken, ...(kind === 'agents' ? [scene.tokens.day.slice(4, 20)] : [])],
  ),
  'POST /v1/tokens': itself(() => ({ path: '/v1/tokens', body: { principal: { scopes: ['read'] } } })),
  'DELETE /v1/tokens/{id}': behind(async (target) => ({ path: `/v1/tokens/${await tokenIn(target)}` }), {
    isChange: true,
  }),
  'GET /v1/webhooks': listing(
    () => ({ path: '/v1/webhooks' }),
    async (target) => [hooks.get(target.owner) ?? (await hookIn(target))],
    { isNew: true },
  ),
  'POST /v1/webhooks': itself(() => ({ path: '/v1/webhooks', body: WEBHOOK })),
  'GET /v1/webhooks/{id}': behind(async (target) => ({ path: `/v1/webhooks/${await hookIn(target)}` })),
  'DELETE /v1/webhooks/{id}': behind(async (target) => ({ path: `/v1/webhooks/${await hookIn(target)}` }), {
    isChange: true,
  }),
  'GET /v1/webhooks/{id}/deliveries': behind(async (target) => ({
    path: `/v1/webhooks/${await hookIn(target)}/deliveries`,
  })),
  'POST /v1/webhooks/{id}/deliveries/{delivery}/again': behind(
    async (target) => ({ path: `/v1/webhooks/${await hookIn(target)}/deliveries/none/again`, body: {} }),
    { control: [404], isAlike: true },
  ),
  'GET /v1/owners/{owner}': itself((target) => ({ path: `/v1/owners/${target.owner}` }), { sees: 'denied' }),
  'PUT /v1/owners/{owner}': itself((target) => ({ path: `/v1/owners/${target.owner}`, body: { keepDays: 3_000 } }), {
    agents: 'denied',
    sees: 'denied',
    about: 'somebody',
  }),
  'DELETE /v1/owners/{owner}': itself((target) => ({ path: `/v1/owners/${target.owner}` }), {
    agents: 'denied',
    sees: 'denied',
    about: 'somebody',
  }),
  'POST /v1/import': itself((target) => ({ path: '/v1/import', lines: exported.get(target.owner) ?? '' }), {
    agents: 'denied',
    sees: 'denied',
  }),
  'POST /v1/prune': listing(
    () => ({ path: '/v1/prune', body: { keep: 0, dryRun: true } }),
    async (target) => [(await target.of('host')).conversation],
  ),
  'GET /v1/usage': listing(
    () => ({ path: '/v1/usage' }),
    (_, kind) => [kind === 'agents' ? '"host"' : '"bob"'],
  ),
  'GET /v1/processes': itself(() => ({ path: '/v1/processes?running=1' }), { agents: 'denied', sees: 'denied' }),
  'POST /v1/audit': {
    all: itself(() => ({ path: '/v1/audit', body: { verify: true } }), { agents: 'denied', sees: 'denied' }),
    'a tree': behind(async (target) => ({
      path: '/v1/audit',
      body: { rootId: (await target.of('host')).conversation },
    })),
  },
  'POST /ai-sdk/{agent}': ofAgent((target) => {
    const said = { id: `m${idsOfKeys++}`, role: 'user', parts: [{ type: 'text', text: 'Go.' }] }
    const body = { id: `chat-${idsOfKeys++}`, messages: [said], trigger: 'submit-message' }
    return { path: `/ai-sdk/${target.agent('host')}`, body }
  }, BEGINS),
  'GET /ai-sdk/{agent}/{chat}/stream': ofAgent((target) => ({ path: chatPath(target, '/stream') }), { status: 204 }),
  'GET /ai-sdk/{agent}/{chat}/messages': ofAgent((target) => ({ path: chatPath(target, '/messages') }), {
    status: 200,
  }),
  'POST /ai-sdk/{agent}/{chat}/stop': ofAgent((target) => ({ path: chatPath(target, '/stop'), body: {} }), {
    status: 200,
  }),
  'POST /ag-ui/{agent}': ofAgent((target) => {
    const messages = [{ id: `m${idsOfKeys++}`, role: 'user', content: 'Go.' }]
    return {
      path: `/ag-ui/${target.agent('host')}`,
      body: { threadId: `t${idsOfKeys++}`, runId: `r${idsOfKeys++}`, messages },
    }
  }, BEGINS),
  'GET /ag-ui/{agent}/capabilities': ofAgent((target) => ({ path: `/ag-ui/${target.agent('host')}/capabilities` })),
  'GET /.well-known/agent-card.json': listing(
    () => ({ path: '/.well-known/agent-card.json' }),
    () => ['"careful"'],
    {
      sees: 'own',
    },
  ),
  'GET /a2a/{agent}/.well-known/agent-card.json': ofAgent((target) => ({
    path: `/a2a/${target.agent('host')}/.well-known/agent-card.json`,
  })),
  'GET /a2a/{agent}/v0.3/.well-known/agent-card.json': ofAgent((target) => ({
    path: `/a2a/${target.agent('host')}/v0.3/.well-known/agent-card.json`,
  })),
  'POST /a2a/{agent}': a2aMethods('/a2a/{agent}'),
  'POST /a2a/{agent}/': a2aMethods('/a2a/{agent}/'),
  'POST /a2a/{agent}/message:send': a2aSend('/message:send'),
  'POST /a2a/{agent}/message:stream': a2aSend('/message:stream'),
  'GET /a2a/{agent}/tasks': ofAgent((target) => ({ path: `/a2a/${target.agent('host')}/tasks`, headers: A2A })),
  'GET /a2a/{agent}/tasks/{id}': task(''),
  'POST /a2a/{agent}/tasks/{id}:cancel': task(':cancel', { body: {}, of: 'careful', isChange: true }),
  'GET /a2a/{agent}/tasks/{id}:subscribe': task(':subscribe', { of: 'careful' }),
  'POST /a2a/{agent}/tasks/{id}:subscribe': task(':subscribe', { body: {}, of: 'careful' }),
  'POST /a2a/{agent}/tasks/{id}/pushNotificationConfigs': task('/pushNotificationConfigs', {
    body: HOOK,
    isChange: true,
  }),
  'GET /a2a/{agent}/tasks/{id}/pushNotificationConfigs': task('/pushNotificationConfigs'),
  'GET /a2a/{agent}/tasks/{id}/pushNotificationConfigs/{config}': behind(async (target) => ({
    path: await pushIn(target),
    headers: A2A,
  })),
  'DELETE /a2a/{agent}/tasks/{id}/pushNotificationConfigs/{config}': behind(
    async (target) => ({ path: await pushIn(target), headers: A2A }),
    { isChange: true },
  ),
  'GET /a2a/{agent}/extendedAgentCard': ofAgent(
    (target) => ({ path: `/a2a/${target.agent('host')}/extendedAgentCard`, headers: A2A }),
    { control: [400] },
  ),
  'POST /mcp': {
    'tools/list': {
      ...mcp('tools/list', () => ({})),
      agents: 'filtered',
      sees: 'own',
      marks: () => ['"host"', '"careful"'],
    },
    'tools/call of an agent': mcp(
      'tools/call',
      (target) => ({ name: target.agent('host'), arguments: { message: 'Go.' } }),
      {
        sees: 'own',
        ...BEGINS,
      },
    ),
    run_list: {
      ...mcp('tools/call', () => ({ name: 'run_list', arguments: {} })),
      agents: 'filtered',
      sees: 'filtered',
      marks: async (target) => [(await target.of('host')).run],
      isNew: true,
    },
    run_get: mcpRun('run_get'),
    run_wait: mcpRun('run_wait'),
    run_cancel: mcpRun('run_cancel', { isChange: true }, 'careful'),
    'resources/list': {
      ...mcp('resources/list', () => ({})),
      agents: 'filtered',
      sees: 'filtered',
      marks: async (target) => [(await target.of('host')).run],
      isNew: true,
    },
    'a run': mcp('resources/read', async (target) => ({ uri: `legate://runs/${(await target.of('host')).run}` })),
    'a transcript': mcp('resources/read', async (target) => ({
      uri: `legate://conversations/${(await target.of('host')).conversation}/transcript`,
    })),
    'a result': mcp('resources/read', async (target) => ({
      uri: `legate://results/${(await target.of('host')).answer}`,
    })),
  },
  'GET /mcp': behind(
    async (target) => ({ path: '/mcp', headers: { ...MCP, 'mcp-session-id': await sessionIn(target) } }),
    {
      day: 'unknown',
    },
  ),
  'DELETE /mcp': behind(
    async (target) => ({ path: '/mcp', headers: { ...MCP, 'mcp-session-id': await sessionIn(target) } }),
    {
      day: 'unknown',
      isChange: true,
    },
  ),
}

async function waitingNodes(target: Target): Promise<readonly string[]> {
  const names = ['careful', 'curious', 'payer'] as const
  const open = await Promise.all(names.map(async (name) => (await target.of(name)).open))
  return [...open, (await target.of('clumsy')).run]
}

/** A webhook of a token that stands beside the narrower one. */
async function hookIn({ isThere, owner }: Target): Promise<string> {
  if (!isThere) return '0000000000000000'
  const bob = { id: owner, scopes: ['start', 'read'] as const }
  const token = owner === 'lea' ? scene.tokens.wide : await scene.setting.tokenFor(bob)
  const answer = await scene.setting.post('/v1/webhooks', WEBHOOK, { token })
  const { webhook } = (await answer.json()) as { webhook: { id: string } }
  hooks.set(owner, webhook.id)
  return webhook.id
}

async function tokenIn({ isThere, owner }: Target): Promise<string> {
  if (!isThere) return '0000000000000000'
  return (await scene.setting.tokenFor({ id: owner, scopes: ['read'] })).slice(4, 20)
}

/** A session of the wide token. */
async function sessionIn({ isThere }: Target): Promise<string> {
  return isThere ? ((await opened(scene.tokens.wide)) ?? '') : '00000000-0000-4000-8000-000000000000'
}

/** A push notification that the wide token asked for. */
async function pushIn(target: Target): Promise<string> {
  const path = `/a2a/${target.agent('host')}/tasks/${(await target.of('host')).run}/pushNotificationConfigs`
  if (!target.isThere) return `${path}/none`
  const answer = await send('POST', { path, body: HOOK, headers: A2A }, scene.tokens.wide)
  return `${path}/${(JSON.parse(answer.text) as { id: string }).id}`
}

const USUAL = [200, 201, 202, 204]
const guarded = TABLE.filter(({ scope }) => scope !== 'none')

interface Cell {
  readonly name: string
  readonly method: string
  readonly one: Case
}

const CELLS: readonly Cell[] = guarded.flatMap(({ method, path }) => {
  const name = `${method} ${path}`
  const row = ROWS[name]
  if (row === undefined) return []
  if ('ask' in row) return [{ name, method, one: row as Case }]
  return Object.entries(row).map(([what, one]) => ({ name: `${name}, ${what}`, method, one: one as Case }))
})

const cells = CELLS.map((cell) => [cell.name, cell] as const)

interface Answered {
  readonly status: number
  readonly text: string
}

async function send(method: string, asked: Asked, token: string): Promise<Answered> {
  const { path, body, lines, headers = {} } = asked
  const type = lines === undefined ? 'application/json' : 'application/x-ndjson'
  const hasBody = takesBody(method as 'GET')
  const answer = await fetch(`${scene.setting.server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(hasBody ? { 'content-type': type } : {}), ...headers },
    ...(hasBody ? { body: lines ?? JSON.stringify(body ?? {}) } : {}),
  })
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
  return { status: answer.status, text: isStream ? await beginningOf(answer) : await answer.text() }
}

/** What a stream says at once. */
async function beginningOf(answer: Response): Promise<string> {
  const reader = (answer.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const late = new Promise<undefined>((resolve) => {
    setTimeout(() => resolve(undefined), STREAM_MS)
  })
  for (;;) {
    const part = await Promise.race([reader.read(), late])
    if (part === undefined || part.done) break
    text += part.value
  }
  await reader.cancel()
  return text
}

const STREAM_MS = 400

/** The bytes of an answer without the ids and names that were asked for. */
function plain({ status, text }: Answered, asked: Asked): Answered {
  const named = JSON.stringify([asked.path, asked.body, asked.headers]).match(
    /[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{16}\b/g,
  )
  let bare = text
  for (const id of new Set(named)) bare = bare.replaceAll(id, 'ID')
  return { status, text: bare.replaceAll(/\b(?:host|careful|nobody)\b/g, 'AGENT') }
}

/**
 * Everything that a request which is refused must not have changed. What an earlier request of the wide token began goes on by itself:
 * it comes to its end first.
 */
async function fingerprint(): Promise<string> {
  const { runtime } = scene.setting
  while (await isBusy(runtime)) await sleep(5)
  const hash = createHash('sha256')
  const roots = await runtime.store.roots({ limit: 10_000 })
  for (const { id } of roots) hash.update(`${id} ${(await runtime.store.tree(id)).lastSeq(id)} `)
  const rows = await Promise.all(
    ['token', 'webhook', 'owner'].map((kind) => runtime.store.registry.list(kind, { limit: 1_000 })),
  )
  return `${hash.digest('hex')} ${rows.map(({ length }) => length).join(' ')}`
}

/** What there is once everything that was begun before has come to its end. */
async function standing(): Promise<string> {
  for (let before = await fingerprint(); ; ) {
    await sleep(20)
    const now = await fingerprint()
    if (now === before) return now
    before = now
  }
}

/** Whether anything runs that comes back: a payment does not. */
async function isBusy(runtime: Runtime): Promise<boolean> {
  const running = (await runtime.processes({ running: true })).flatMap((one) => one.running ?? [])
  return running.some(({ tool }) => tool !== 'pay')
}

/** What the wide token gets for the same, about trees of its own where it changes them. */
async function asWide({ method, one }: Cell, target: Target): Promise<Answered> {
  const { runtime } = scene.setting
  const about = one.about ?? target.owner
  const isFresh = one.isChange === true || one.about !== undefined
  const place = isFresh ? targetOf(new Trees(runtime, about)) : target
  return send(method, await one.ask(place), scene.tokens.wide)
}

async function check(cell: Cell, kind: 'agents' | 'sees'): Promise<void> {
  const { method, one } = cell
  const { own, others, tokens } = scene
  const trees = kind === 'agents' ? own : others
  const target = targetOf(one.isNew === true ? new Trees(scene.setting.runtime, trees.owner) : trees)
  await one.marks?.(target, kind)
  const asked = await one.ask(target)
  const verdict = one[kind]
  const wasThere = await standing()

  const got = await send(method, asked, tokens[kind])

  if (verdict === 'own') {
    expect(one.control ?? USUAL).toContain(got.status)
    expect(got.text).not.toContain(secretOf(target.owner))
    return
  }
  expect(await fingerprint()).toBe(wasThere)
  if (verdict === 'denied') expect(got.status).toBe(403)
  if (verdict === 'unknown') await isLikeUnknown(cell, kind, got, asked)
  const wide = await asWide(cell, target)
  expect(one.control ?? USUAL).toContain(wide.status)
  if (one.isAlike !== true) expect(plain(wide, asked)).not.toEqual(plain(got, asked))
  if (verdict !== 'filtered') return
  for (const mark of (await one.marks?.(target, kind)) ?? []) {
    expect(got.text).not.toContain(mark)
    expect(wide.text).toContain(mark)
  }
}

/** The same bytes for ids that nobody has, but for the ids. */
async function isLikeUnknown(
  { method, one }: Cell,
  kind: 'agents' | 'sees',
  got: Answered,
  asked: Asked,
): Promise<void> {
  const owner = kind === 'agents' ? scene.own.owner : scene.others.owner
  const other = await one.ask(nowhere(owner, kind === 'agents'))
  expect(plain(got, asked)).toEqual(plain(await send(method, other, scene.tokens[kind]), other))
  expect([404, one.status ?? 404]).toContain(got.status)
  expect(got.text).not.toContain(secretOf(owner))
}

test('every route has a row, and every row a route', () => {
  const names = guarded.map(({ method, path }) => `${method} ${path}`)
  expect(Object.keys(ROWS).toSorted()).toEqual(names.toSorted())
})

describe('what a token of the same id may not reach', () => {
  test.each(cells)('%s: trees of other agents', (_, cell) => check(cell, 'agents'))

  test.each(cells)('%s: trees of other owners', (_, cell) => check(cell, 'sees'))

  test.each(cells)('%s: with nothing left of the day', async (_, { method, one }) => {
    const { setting, tokens } = scene
    const about = one.about ?? 'lea'
    const target = targetOf(
      one.isChange === true || one.about !== undefined ? new Trees(setting.runtime, about) : scene.own,
    )
    const asked = await one.ask(target)
    const wasThere = await standing()

    const got = await send(method, asked, tokens.day)

    if (one.day === 'allowed') expect(one.control ?? USUAL).toContain(got.status)
    if (one.day === 'unknown') expect(got.status).toBe(404)
    if (one.day !== 'over') return
    expect(got.text).toContain('lea has had its 0 runs of today')
    expect(got.text).toContain('over_quota')
    expect([200, 429]).toContain(got.status)
    expect(await fingerprint()).toBe(wasThere)
  })

  test.each(cells)('%s: made with a token that was revoked', async (_, { method, one }) => {
    expect((await send(method, await one.ask(targetOf(scene.own)), scene.tokens.revoked)).status).toBe(401)
  })
})

test('the key of a run that a token does not see tells it nothing', async () => {
  const { setting, tokens } = scene
  const start = (token: string, agent: string) =>
    setting.post('/v1/runs', { agent, input: 'Hi' }, keyed('taken', token)).then(async (answer) => ({
      status: answer.status,
      text: await answer.text(),
    }))
  const wide = await start(tokens.wide, 'host')
  const { runId } = JSON.parse(wide.text) as { runId: string }

  const hidden = await start(tokens.agents, 'greeter')

  expect(hidden.status).toBe(409)
  expect(hidden.text).not.toContain(runId)
  expect((await start(tokens.sees, 'greeter')).text).toContain(runId)
  expect(runId).not.toBe(UNKNOWN)
})
