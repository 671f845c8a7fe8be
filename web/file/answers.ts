// A run that was exported as a file. Its answers stand in the page itself: no request leaves it.

/** True in a run that was exported as a file: all of the page is one script. */
export const isFile: boolean = import.meta.env['VITE_FILE'] === '1'

/** What `legate export --html` writes into the file. */
interface RunFile {
  /** The conversation that the tree begins with. */
  readonly rootId: string
  readonly events: readonly { readonly at: number }[]
  /** The answers of the server, by path. */
  readonly answers: Readonly<Record<string, unknown>>
}

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** A reader leaves a stream that says nothing for long. */
const ALIVE_MS = 15_000

let read: RunFile | undefined

function runFile(): RunFile {
  read ??= JSON.parse(document.getElementById('legate-run')?.textContent ?? '{}') as RunFile
  return read
}

/** The address of the file's run within the page. */
export function pathOfFile(): string {
  return `/c/${runFile().rootId}`
}

/** When the last thing of the file's run happened. */
export function momentOfFile(): number {
  return runFile().events.at(-1)?.at ?? Date.now()
}

/** Answers as the server did when the file was written. */
export const fileFetch: Fetch = async (url, { method = 'GET' }) => {
  const { pathname, searchParams } = new URL(url)
  if (method !== 'GET') return problem(403, 'This is a file: nothing can be changed or started in it.')
  if (pathname === '/v1/feed') return feedOf(searchParams.get('tree') ?? '')
  const { answers } = runFile()
  const found = answers[pathname + new URL(url).search] ?? answers[pathname]
  return found === undefined ? problem(404, 'The file does not have this.') : json(found, 200)
}

function problem(status: number, detail: string): Response {
  return json(
    { type: 'about:blank', title: detail, status, detail, code: status === 403 ? 'denied' : 'not_found' },
    status,
  )
}

function json(value: unknown, status: number): Response {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } })
}

/** The stored events of the tree, and then nothing more, for ever. */
function feedOf(places: string): Response {
  const { rootId, events } = runFile()
  const [, after] =
    places
      .split(',')
      .map((place) => place.split(':'))
      .find(([id]) => id === rootId) ?? []
  const wanted = after === undefined ? [] : events.slice(Number(after))
  const frames = wanted.map((event) => `event: tree\ndata: ${JSON.stringify({ rootId, event })}\n\n`)
  const body = new ReadableStream<Uint8Array>({
    start: (stream) => {
      const encoder = new TextEncoder()
      stream.enqueue(encoder.encode('event: hello\ndata: {}\n\n'))
      for (const frame of frames) stream.enqueue(encoder.encode(frame))
      setInterval(() => stream.enqueue(encoder.encode(': still here\n\n')), ALIVE_MS)
    },
  })
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
