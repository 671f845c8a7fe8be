import type { ParamKind } from '../../core/operations/operation.ts'
import { Problem } from '../http/problem/problem.ts'
import type { Answer, Route, RouteCall } from '../http/table/route.ts'
import { type PageFile, pageFiles } from './files.ts'

const FOR_EVER = 'public, max-age=31536000, immutable'
const ASK_AGAIN = 'no-cache'
const PAGE = 'The page, the same for everybody: what it shows, it asks of this API with a token.'

/** The inspector: every address of the page gives the page, which reads the address itself. */
export const PAGE_ROUTES: readonly Route[] = [
  pageAt('/', 'The inspector: what needs you, what works, what is done.'),
  pageAt('/new', 'The inspector: choose an agent to start.'),
  pageAt('/new/{agent}', 'The inspector: start an agent.', { agent: 'name' }),
  pageAt('/c/{id}', 'The inspector: a conversation as a thread.', { id: 'text' }),
  pageAt('/c/{id}/{view}', 'The inspector: a conversation as a graph, or over time.', { id: 'text', view: 'text' }),
  pageAt('/diff', 'The inspector: choose two runs to compare.'),
  pageAt('/diff/{a}', 'The inspector: choose a run to compare with.', { a: 'text' }),
  pageAt('/diff/{a}/{b}', 'The inspector: two runs, node by node.', { a: 'text', b: 'text' }),
  pageAt('/ops', 'The inspector: processes, queue, usage, tokens, webhooks.'),
  {
    method: 'GET',
    path: '/assets/{file}',
    scope: 'none',
    isPage: true,
    summary: 'A script or a style sheet of the inspector.',
    params: { file: 'text' },
    answers: {
      200: { description: 'The file. Its name changes with its content.', type: 'text/javascript' },
      304: { description: 'You have it.' },
    },
    handler: (call) => fileAt(`assets/${call.params['file'] ?? ''}`, call),
  },
]

function pageAt(path: string, summary: string, params?: Readonly<Record<string, ParamKind>>): Route {
  return {
    method: 'GET',
    path,
    scope: 'none',
    isPage: true,
    summary,
    ...(params === undefined ? {} : { params }),
    answers: { 200: { description: PAGE, type: 'text/html' }, 304: { description: 'You have it.' } },
    handler: (call) => fileAt('index.html', call),
  }
}

async function fileAt(name: string, { headers }: RouteCall): Promise<Answer> {
  const files = await pageFiles()
  if (files.size === 0)
    throw new Problem(
      'not_found',
      'The inspector is not here: a bundle does not hold it, and a checkout builds it with npm run build.',
    )
  const file = files.get(name)
  if (file === undefined) throw new Problem('not_found', 'The inspector has no such file.')
  const known = {
    etag: file.etag,
    'cache-control': file.isHashed ? FOR_EVER : ASK_AGAIN,
    vary: 'Accept-Encoding, Origin',
  }
  if (headers.get('if-none-match') === file.etag) return { status: 304, headers: known }
  return { status: 200, ...bodyFor(file, headers, known) }
}

function bodyFor({ type, bytes, packed }: PageFile, headers: Headers, known: Record<string, string>) {
  const takesPacked = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
  const encoding = takesPacked ? { 'content-encoding': 'gzip' } : {}
  return { bytes: takesPacked ? packed : bytes, headers: { ...known, 'content-type': type, ...encoding } }
}
