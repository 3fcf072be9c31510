// The browser of a user who says yes to everything: it follows where the address leads.
await fetch(process.argv[2]);
