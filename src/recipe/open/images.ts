import type { Block } from '../../graph/content.ts'
import { Arguments } from './arguments.ts'
import { invalid } from './refusal.ts'

const MOST_IMAGES = 20
/** Of all together, as base64. */
const MOST_CHARS = 20_000_000

/** The images of a call, in order. What is no image is refused before anything is started. */
export function readImages(given: readonly unknown[] | null): readonly Block[] {
  const items = given ?? []
  if (items.length > MOST_IMAGES) invalid(`Invalid parameters: images: at most ${MOST_IMAGES}, not ${items.length}`)
  let chars = 0
  return items.map((item, at) => {
    const place = `images[${at}]`
    const image = new Arguments(item, place)
    const data = image.text('data') ?? missing(place, 'data')
    const mediaType = image.text('mime_type') ?? missing(place, 'mime_type')
    chars += data.length
    if (chars > MOST_CHARS) invalid(`Invalid parameters: images: together at most ${MOST_CHARS / 1e6} MB as base64`)
    if (!/^image\/[\w.+-]+$/.test(mediaType)) {
      invalid(`Invalid parameters: ${place}.mime_type: ${JSON.stringify(mediaType.slice(0, 60))} is no image type`)
    }
    if (data.length % 4 === 1 || !/^[A-Za-z0-9+/\s]+(?:={1,2}\s*)?$/.test(data))
      invalid(`Invalid parameters: ${place}.data is not base64`)
    return { type: 'image', mediaType, data }
  })
}

function missing(place: string, field: string): never {
  return invalid(`Invalid parameters: ${place}: missing field \`${field}\``)
}
