import type { Reader } from '../reader.ts'
import type { Turn } from '../rows.ts'

/** What is known of the request that a run is for: as its caller said it, or that of the run above it. */
export function attributesOf(reader: Pick<Reader, 'turn' | 'link'>, turn: Turn): NonNullable<Turn['attributes']> {
  for (let at: Turn | undefined = turn; at !== undefined; ) {
    if (at.attributes !== null) return at.attributes
    const above: string | null = reader.link(at.id)?.hostTurnId ?? at.wokenBy
    at = above === null ? undefined : reader.turn(above)
  }
  return NONE
}

const NONE: NonNullable<Turn['attributes']> = Object.freeze({})
