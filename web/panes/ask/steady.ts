// When a button that answers for somebody may be pressed: it has stood where it is, in sight, long enough to be read and meant.

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react'

const STEADY_MS = 600
const LOOK_MS = 100
/** Less is no movement: the pointer is on the same button still. */
const STILL_PX = 8

export interface Steady {
  readonly isSteady: boolean
  /** Whether the head of the card was in sight. */
  readonly isBegun: boolean
  /** Looks again at this very moment, for the press itself. */
  readonly isNow: () => boolean
}

interface Place {
  readonly left: number
  readonly top: number
  readonly since: number
}

/**
 * Watches the button `button` of a card. It is steady where it has been in sight and unmoved for a while, after the head of the card
 * was in sight, too.
 */
export function useSteady(card: RefObject<HTMLElement | null>, button: string): Steady {
  const [isSteady, setSteady] = useState(false)
  const [isBegun, setBegun] = useState(true)
  const place = useRef<Place | null>(null)
  const isHeadSeen = useRef(false)
  const look = useCallback((): boolean => {
    const head = card.current
    const shown = head?.querySelector(button)
    if (head == null || shown == null || document.visibilityState !== 'visible') {
      place.current = null
      return false
    }
    const now = performance.now()
    const top = head.getBoundingClientRect().top
    if (top >= 0 && top < innerHeight) isHeadSeen.current = true
    place.current = placeOf(shown, place.current, now)
    return isHeadSeen.current && place.current !== null && now - place.current.since >= STEADY_MS
  }, [card, button])
  useEffect(() => {
    const again = () => {
      setSteady(look())
      setBegun(isHeadSeen.current)
    }
    again()
    const timer = setInterval(again, LOOK_MS)
    return () => clearInterval(timer)
  }, [look])
  return { isSteady, isBegun, isNow: look }
}

/** Where the button is, and since when; null while it is out of sight or covered. */
function placeOf(shown: Element, before: Place | null, now: number): Place | null {
  const { left, top, right, bottom } = shown.getBoundingClientRect()
  const isInside = top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth && bottom > top
  if (!isInside || !isOnTop(shown, (left + right) / 2, (top + bottom) / 2)) return null
  const isStill = before !== null && Math.abs(before.left - left) < STILL_PX && Math.abs(before.top - top) < STILL_PX
  return isStill ? before : { left, top, since: now }
}

function isOnTop(shown: Element, x: number, y: number): boolean {
  const found = document.elementFromPoint(x, y)
  return found !== null && shown.contains(found)
}
