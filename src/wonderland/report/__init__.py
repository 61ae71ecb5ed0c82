"""What a fit is worth: claims checked on new data, and pictures of them."""
