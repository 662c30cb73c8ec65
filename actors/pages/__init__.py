"""Mental models, knowledge pages and directives: what they say, when they are refreshed, how they are changed."""
