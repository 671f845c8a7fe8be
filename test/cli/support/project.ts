import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Place } from './cli.ts'

/** A folder with these files and an empty home folder. */
export function project(files: Readonly<Record<string, string>>): Place {
  const place = new Place()
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(place.folder, name)), { recursive: true })
    writeFileSync(path.join(place.folder, name), text)
  }
  place.more['HOME'] = path.join(place.folder, 'home')
  return place
}
