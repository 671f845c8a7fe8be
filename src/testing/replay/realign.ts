const TOKEN = /(<id:\d+>|\*\*\*)/

/** Cuts the clean form of a text where its pieces were cut; what was replaced is in the piece in which it began. */
export function realign(pieces: readonly string[], clean: string): string[] {
  const text = pieces.join('')
  if (text === clean) return [...pieces]
  const spans = spansOf(text, clean)
  if (spans === undefined) return pieces.map((_, at) => (at === 0 ? clean : ''))
  let end = 0
  let from = 0
  let span = 0
  return pieces.map((piece, at) => {
    end += piece.length
    while (span < spans.length - 1 && end > (spans[span]?.to ?? 0)) span++
    const to = at === pieces.length - 1 ? clean.length : placeIn(spans[span], end)
    const cut = clean.slice(from, to)
    from = to
    return cut
  })
}

/** A part of the text that is the same in the clean one, or that something stands for there. */
interface Span {
  readonly from: number
  readonly to: number
  readonly cleanFrom: number
  readonly cleanTo: number
  readonly isReplaced: boolean
}

/** Undefined when they cannot be held against each other. */
function spansOf(text: string, clean: string): Span[] | undefined {
  const segments = clean.split(TOKEN)
  const spans: Span[] = []
  let from = 0
  let cleanFrom = 0
  for (const [index, segment] of segments.entries()) {
    const isToken = index % 2 === 1
    const to = isToken
      ? endOfReplaced(text, from, { next: segments[index + 1] ?? '', isLast: index + 2 >= segments.length })
      : from + segment.length
    if (to === -1 || (!isToken && !text.startsWith(segment, from))) return undefined
    const cleanTo = cleanFrom + segment.length
    spans.push({ from, to, cleanFrom, cleanTo, isReplaced: isToken })
    from = to
    cleanFrom = cleanTo
  }
  return spans
}

/** A place inside of what was replaced is the end of what stands for it. */
function placeIn(span: Span | undefined, place: number): number {
  if (span === undefined || place > span.to) return Number.POSITIVE_INFINITY
  const { from, cleanFrom, cleanTo, isReplaced } = span
  return isReplaced && place > from ? cleanTo : cleanFrom + place - from
}

interface Behind {
  readonly next: string
  readonly isLast: boolean
}

/** Where what comes after a token begins in the text. */
function endOfReplaced(text: string, from: number, { next, isLast }: Behind): number {
  if (!isLast) return text.indexOf(next, from)
  const end = text.length - next.length
  return end >= from ? end : -1
}
