/** A text of spaces says nothing. */
export function isSaid(text: string | undefined): boolean {
  return text !== undefined && text.trim() !== ''
}

export function firstSaid(...texts: readonly (string | undefined)[]): string | undefined {
  return texts.find(isSaid)?.trim()
}
