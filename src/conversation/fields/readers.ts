/** What reads answers. Loaded by who reads one: mostly nobody reads more than the outcome. */
export { eventsWithFields } from './events-with-fields.ts'
export { matchingFields } from './matching-fields.ts'
export { doneFields } from './read-fields.ts'
export { waitForField } from './wait-for-field.ts'
