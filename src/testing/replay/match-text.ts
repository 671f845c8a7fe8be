const TOKEN = /(<id:\d+>|<time:\d+>|<duration>|\*\*\*)/
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/y
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/y
const DURATION = /\d+[sm]?/y

/** Says what an id of the recording is in this run; false when it is known to be another. */
export type Bind = (token: string, id: string) => boolean

/** Is this text the recorded one, with ids and times of its own, and with any text where a secret was taken out? */
export function matchText(recorded: string, now: string, bind: Bind): boolean {
  if (recorded === now) return true
  const segments = recorded.split(TOKEN)
  if (segments.length === 1) return false
  const ids: [string, string][] = []
  return matchFrom({ segments, now, ids }, 0, 0) && ids.every(([token, id]) => bind(token, id))
}

interface Matching {
  /** Texts at even places, tokens between them. */
  readonly segments: readonly string[]
  readonly now: string
  readonly ids: [token: string, id: string][]
}

function matchFrom(matching: Matching, index: number, from: number): boolean {
  const { segments, now } = matching
  let at = from
  for (let place = index; place < segments.length; place++) {
    const segment = segments[place] ?? ''
    if (place % 2 === 1 && segment === '***') return matchAfterAny(matching, place + 1, at)
    const length = place % 2 === 0 ? lengthOfText(segment, now, at) : lengthOfToken(matching, segment, at)
    if (length === -1) return false
    at += length
  }
  return at === now.length
}

/** How often it is tried to find what comes after a secret. */
const MOST_TRIES = 100

function matchAfterAny(matching: Matching, index: number, from: number): boolean {
  const { segments, now, ids } = matching
  const next = segments[index] ?? ''
  if (index === segments.length - 1) return now.length - next.length >= from && now.endsWith(next)
  let at = now.indexOf(next, from)
  for (let tries = 0; at !== -1 && tries < MOST_TRIES; tries++) {
    const known = ids.length
    if (matchFrom(matching, index, at)) return true
    ids.length = known
    at = now.indexOf(next, at + 1)
  }
  return false
}

function lengthOfText(text: string, now: string, at: number): number {
  return now.startsWith(text, at) ? text.length : -1
}

/** A text may name a token itself: a model that repeats what it reads does. */
function lengthOfToken({ now, ids }: Matching, token: string, at: number): number {
  if (now.startsWith(token, at)) return token.length
  const pattern = token.startsWith('<id:') ? ID : token === '<duration>' ? DURATION : TIME
  pattern.lastIndex = at
  const found = pattern.exec(now)?.[0]
  if (found === undefined) return -1
  if (pattern === ID) ids.push([token, found])
  return found.length
}
