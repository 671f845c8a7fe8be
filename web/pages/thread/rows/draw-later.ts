// Parts of a long list come and go one per frame. Drawn all at once, a screen full of rows would hold up everything else.

import { startTransition } from 'react'

type Draw = (isNear: boolean) => void

/** Parts that come, by how they are told, with how far they are from the middle of the window. */
const coming = new Map<Draw, number>()
/** Parts that leave: nobody looks at them. */
const leaving = new Set<Draw>()
let isDrawing = false

/** Tells a part whether it is near, in one of the next frames. */
export function drawLater(draw: Draw, seen: IntersectionObserverEntry | undefined): void {
  forgetDrawing(draw)
  if (seen?.isIntersecting === true) coming.set(draw, distanceOf(seen))
  else leaving.add(draw)
  if (isDrawing) return
  isDrawing = true
  requestAnimationFrame(drawNext)
}

export function forgetDrawing(draw: Draw): void {
  coming.delete(draw)
  leaving.delete(draw)
}

function distanceOf({ boundingClientRect, rootBounds }: IntersectionObserverEntry): number {
  return Math.abs(middleOf(boundingClientRect) - (rootBounds === null ? 0 : middleOf(rootBounds)))
}

function middleOf({ top, bottom }: DOMRectReadOnly): number {
  return (top + bottom) / 2
}

/** One comes and one leaves. */
function drawNext(): void {
  const [nearest] = [...coming].reduce<[Draw?, number?]>(
    (best, one) => (one[1] < (best[1] ?? Number.POSITIVE_INFINITY) ? one : best),
    [],
  )
  const [farthest] = leaving
  isDrawing = nearest !== undefined || farthest !== undefined
  if (!isDrawing) return
  startTransition(() => {
    nearest?.(true)
    farthest?.(false)
  })
  if (nearest !== undefined) coming.delete(nearest)
  if (farthest !== undefined) leaving.delete(farthest)
  requestAnimationFrame(drawNext)
}
