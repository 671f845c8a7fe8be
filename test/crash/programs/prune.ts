import { createRuntime } from 'legate'
import { jsonStore } from 'legate/store/json'
import { sqliteStore } from 'legate/store/sqlite'

/** Deletes every tree of the store it is given, and says when it begins. */
const [, , kind, place = ''] = process.argv
const store = kind === 'json' ? jsonStore(place) : sqliteStore(place)
const runtime = createRuntime({ store })
process.stdout.write('.')
await runtime.prune({ keep: 0 })
await runtime.close()
