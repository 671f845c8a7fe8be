// `.` leads from card to card; `a` and `d` answer the card that has the focus, and no other.

import { say } from '../../parts/toast.tsx'
import { isDeliberate, useKeys } from '../../window/keys.ts'

const CARD = '[data-ask]'

export function useAskKeys(): void {
  useKeys({
    a: (event) => press(event, '[data-allow]'),
    d: (event) => press(event, '[data-deny]'),
    '.': () => bringNext(),
  })
}

function cards(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(CARD)]
}

/** A button that is not ready yet does nothing when it is pressed. */
function press(event: KeyboardEvent, button: string): void {
  if (event.repeat) return
  const card = document.activeElement?.closest<HTMLElement>(CARD)
  if (card == null) {
    if (cards().length > 0) say('Choose a card first: the key . leads from one to the next.')
    return
  }
  if (isDeliberate(event)) card.querySelector<HTMLElement>(button)?.click()
}

function bring(card: HTMLElement): void {
  card.scrollIntoView({ block: 'center' })
  card.querySelector<HTMLElement>('[data-allow], textarea, button')?.focus({ preventScroll: true })
}

function bringNext(): void {
  const all = cards()
  const now = all.findIndex((card) => card.contains(document.activeElement))
  const next = all[(now + 1) % all.length]
  if (next !== undefined) bring(next)
}
