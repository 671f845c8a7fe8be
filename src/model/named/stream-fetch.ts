import { isDocument, notAStream } from '../ai-sdk/not-a-stream.ts'

/** Characters of a wrong answer that are shown. */
const SHOWN = 80

/** `fetch` for calls that stream. A good answer that is none throws with how it begins; clients would call it cut. */
export async function streamFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request)
  const type = response.headers.get('content-type') ?? ''
  if (!response.ok || !isDocument(type)) return response
  const beginning = await beginningOf(response.clone())
  if (isEvents(beginning)) return response
  await response.body?.cancel()
  throw notAStream(type, beginning)
}

/** Some servers stream well under a wrong name. */
function isEvents(text: string): boolean {
  return /^(?:data|event|id|retry)?:/.test(text)
}

/** Of events no more is read than shows that they are. */
async function beginningOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.length < SHOWN && !isEvents(text)) {
    const { done, value } = await reader.read()
    if (done) break
    text = `${text}${value}`.replaceAll(/\s+/g, ' ').trimStart()
  }
  reader.cancel().catch(() => undefined)
  return text.trimEnd().slice(0, SHOWN)
}
